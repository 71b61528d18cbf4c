package reputation

import "github.com/deliberd/deliberd/machine"

// CodeAlreadyVindicated refuses a second bonus for one dissent.
const CodeAlreadyVindicated = "already_vindicated"

// Dissent is what a dissent record keeps for the day it turns out right.
type Dissent struct {
	Expected   int64 `json:"expected"` // E of the round, at 1e-9: see Settlement.ExpectedNano
	Vindicated bool  `json:"vindicated"`
}

// Vindicate grants the bonus of §6.1 once: it marks the dissent and returns
// the dissenter's new rating in the dissent's domain. It errs with
// already_vindicated the second time, and as [Update]; then nothing changes.
func (d *Dissent) Vindicate(r Rating, k float64) (Rating, error) {
	if d.Vindicated {
		return r, machine.Refuse(CodeAlreadyVindicated, "", "this dissent has had its bonus")
	}
	after, err := Vindicate(r, k, float64(d.Expected)/1e9)
	if err != nil {
		return r, err
	}
	d.Vindicated = true
	return after, nil
}
