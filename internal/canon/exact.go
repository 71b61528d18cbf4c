package canon

import "bytes"

// NotExact is the code of a text that leaves a member out, or writes null, an
// empty string or an empty list where the member should be left out.
const NotExact Code = "missing_or_empty_member"

// DecodeExact is [Decode] for records that have one spelling only: v, encoded
// again, must be the canonical form of raw. A member without omitempty must
// therefore stand in the text, one with omitempty must not stand there empty,
// and null is nowhere accepted.
func DecodeExact(raw []byte, v any) error {
	text := raw
	if err := CheckCanonical(raw); err != nil {
		if err := CheckIntegers(raw); err != nil {
			return err
		}
		if text, err = Canonicalize(raw); err != nil {
			return err
		}
	}
	if err := DecodeChecked(text, v); err != nil {
		return err
	}
	again, err := Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, text) {
		at := 0
		for at < len(again) && at < len(text) && again[at] == text[at] {
			at++
		}
		return &Error{Code: NotExact, Offset: at, Detail: "a member is missing, null or empty near here"}
	}
	return nil
}
