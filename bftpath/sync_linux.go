package bftpath

import (
	"os"
	"syscall"
)

// datasync makes what was written durable. The file's size and blocks do not
// change, since the room was filled before, so its metadata need not follow.
func datasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
