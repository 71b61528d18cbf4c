// Package detmath is the transcendental arithmetic of replicated code: the
// same bits on every machine.
//
// math.Exp, Log, Pow and Exp2 differ between processors with and without fused
// multiply-add, and a compiler may fuse x*y + z wherever the product is not
// converted explicitly. The functions here use only +, −, × and ÷ of IEEE 754
// doubles, each product wrapped in float64(…), and math.Floor, Frexp and
// Ldexp, which are exact. Their relative error is below 3e-15.
package detmath
