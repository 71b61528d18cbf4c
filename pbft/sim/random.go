package sim

// source draws the numbers that make a plan (splitmix64).
type source struct{ state uint64 }

func (s *source) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	return scramble(s.state)
}

// below draws from 0 to n−1.
func (s *source) below(n int) int { return int(s.next() % uint64(n)) }

// chance is true for p of 1,000 draws.
func (s *source) chance(p int) bool { return s.below(1000) < p }

func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// mix makes one number of several. Whatever happens while a plan is played is
// drawn by mixing the seed with the identity of what it happens to, never from
// a stream: leaving one fault out then does not change the luck of the others.
func mix(words ...uint64) uint64 {
	h := uint64(0x51_7c_c1_b7_27_22_0a_95)
	for _, w := range words {
		h = scramble(h ^ (w + 0x9e3779b97f4a7c15 + h<<6 + h>>2))
	}
	return h
}
