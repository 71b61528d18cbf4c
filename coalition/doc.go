// Package coalition will be the machine of Coalition Protocol v0.1.
package coalition
