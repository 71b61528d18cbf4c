// Package psi will hold the private set intersection of Coalition Protocol
// v0.1 over ristretto255.
package psi
