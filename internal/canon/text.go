package canon

// AppendText appends the canonical JSON of a string, with its quotes. text
// must be valid UTF-8.
func AppendText(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		if b := text[i]; b < 0x20 || b == '"' || b == '\\' {
			return append(appendEscaped(append(out, text[:i]...), []byte(text[i:])), '"')
		}
	}
	return append(append(out, text...), '"')
}
