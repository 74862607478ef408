package jsonscan

// Null takes a JSON null if one comes next.
func (r *Reader) Null() bool {
	if r.peek() != 'n' {
		return false
	}
	r.literal("null")
	return r.err == nil
}

// String takes a string; the JSON null is the empty string.
func (r *Reader) String() string {
	if r.Null() {
		return ""
	}
	raw, escaped := r.rawString()
	if r.Take(len(raw)); r.err != nil {
		return ""
	}
	if escaped {
		raw = unescape(raw)
	}
	return string(raw)
}

// Bool takes a boolean. set is false for the JSON null.
func (r *Reader) Bool() (value, set bool) {
	switch c := r.peek(); c {
	case 'n':
		r.literal("null")
		return false, false
	case 't':
		r.literal("true")
		return r.err == nil, true
	case 'f':
		r.literal("false")
		return false, true
	default:
		r.Failf("%s where a boolean is expected", describe(c))
		return false, false
	}
}

// Skip takes any value and forgets it. The value is still checked to be valid JSON.
func (r *Reader) Skip() { r.skip(nil) }

// skip skips the value of a member with this key, or one that has no key.
func (r *Reader) skip(key []byte) {
	switch c := r.peek(); c {
	case '{':
		for o := r.Object(); o.Next(); {
			r.skip(o.key)
		}
	case '[':
		for a := r.Array(); a.Next(); {
			if key != nil && r.mark != nil && !r.marked {
				r.marked = r.mark(key, r.peek(), true)
			}
			r.skip(nil)
		}
	case '"':
		r.rawString()
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		r.number()
	}
}

// Raw takes any value and returns its text, which shares the memory of the Reader's.
// It is nil for the JSON null and after an error.
func (r *Reader) Raw() []byte {
	if r.Null() || r.peek() == 0 {
		if r.err == nil && r.pos >= len(r.data) {
			r.Failf("end of text where a value is expected")
		}
		return nil
	}
	start := r.pos
	r.Skip()
	if r.err != nil {
		return nil
	}
	return r.data[start:r.pos:r.pos]
}

func (r *Reader) literal(word string) {
	if r.err != nil {
		return
	}
	if len(r.data)-r.pos < len(word) || string(r.data[r.pos:r.pos+len(word)]) != word {
		r.Failf("invalid literal where %s is expected", word)
		return
	}
	r.pos += len(word)
}

// MaxNumber bounds the text of a number, in bytes: no API server writes a longer one, and policies take none (see policy.MaxNumber).
const MaxNumber = 512

// number takes a number of RFC 8259, section 6.
func (r *Reader) number() {
	if r.err != nil {
		return
	}
	i, d := r.pos, r.data
	digits := func() bool {
		start := i
		for i < len(d) && d[i] >= '0' && d[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(d) && d[i] == '-' {
		i++
	}
	ok := true
	if i < len(d) && d[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	if ok && i < len(d) && d[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(d) && (d[i] == 'e' || d[i] == 'E') {
		i++
		if i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		r.Failf("%s where a value is expected", describe(r.peek()))
		return
	}
	if i-r.pos > MaxNumber {
		r.Failf("a number of more than %d characters", MaxNumber)
		return
	}
	r.pos = i
}

// RawObject takes an object and returns its text as Raw does. member is called for each member
// and takes or skips its value. The JSON null gives nil.
func (r *Reader) RawObject(member func(*Object)) []byte {
	r.peek()
	start := r.pos
	o := r.Object()
	if o.done { // null, or an error
		return nil
	}
	for o.Next() {
		member(&o)
	}
	if r.err != nil {
		return nil
	}
	return r.data[start:r.pos:r.pos]
}
