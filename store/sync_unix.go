//go:build !windows

package store

func ignoreUnsupported(err error) error { return err }
