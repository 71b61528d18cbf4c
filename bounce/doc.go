// Package bounce will be the machine of the Bounce protocol v0.1.
package bounce
