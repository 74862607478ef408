package jsonscan

import "slices"

// sequence iterates over what stands between two brackets and is separated by commas.
type sequence struct {
	r    *Reader
	n    int // elements or members so far
	done bool
}

// sequence starts one. The JSON null counts as one without content, as it does for encoding/json.
func (r *Reader) sequence(open byte) sequence {
	return sequence{r: r, done: r.Null() || !r.enter(open)}
}

// next moves to the next element or member, and leaves the sequence at its end.
func (s *sequence) next(end byte) bool {
	if s.done {
		return false
	}
	switch c := s.r.peek(); {
	case s.r.err != nil:
		s.done = true
	case c == end:
		s.r.pos++
		s.r.depth--
		s.done = true
	case s.n > 0:
		s.done = !s.r.take(',')
	}
	s.n++
	return !s.done
}

// Object iterates over the members of a JSON object.
type Object struct {
	sequence
	key  []byte
	seen uint64 // the members that OneOf has taken
}

// Object starts an object. The JSON null counts as an object without members.
func (r *Reader) Object() Object { return Object{sequence: r.sequence('{')} }

// Next moves to the next member. The caller then takes or skips its value.
func (o *Object) Next() bool {
	if !o.next('}') {
		return false
	}
	r := o.r
	raw, escaped := r.rawString()
	if escaped {
		raw = unescape(raw)
	}
	if !r.take(':') {
		o.done = true
		return false
	}
	o.key = raw
	if r.mark != nil && !r.marked {
		r.marked = r.mark(raw, r.peek(), false)
	}
	return true
}

// Key is the decoded key of the present member. It is valid until the next call of Next.
func (o *Object) Key() []byte { return o.key }

// Member says what is done with the value of a key.
type Member struct {
	key  string
	text *string
	take func()
}

// Text is a member whose value is a string.
func Text(key string, into *string) Member { return Member{key: key, text: into} }

// Value is a member whose value take takes or skips.
func Value(key string, take func()) Member { return Member{key: key, take: take} }

// Members reads an object: of each key that is named one value, and nothing of the others.
func (r *Reader) Members(members ...Member) {
	for o := r.Object(); o.Next(); {
		o.OneOf(members...)
	}
}

// OneOf takes the value of the present member as the one of its key does, and skips it if there is none. The members of an object, at most 64, are given in
// the same order each time. A key that comes twice fails: readers disagree about which of the two counts.
func (o *Object) OneOf(members ...Member) {
	i := slices.IndexFunc(members, func(m Member) bool { return m.key == string(o.key) })
	if i < 0 {
		o.r.Skip()
		return
	}
	if o.seen&(1<<i) != 0 {
		o.r.Failf("duplicate key %q", o.key)
	}
	o.seen |= 1 << i
	if m := members[i]; m.text != nil {
		*m.text = o.r.String()
	} else {
		m.take()
	}
}

// Array iterates over the elements of a JSON array.
type Array struct{ sequence }

// Array starts an array. The JSON null counts as an empty one.
func (r *Reader) Array() Array { return Array{r.sequence('[')} }

// Next moves to the next element. The caller then takes or skips it.
func (a *Array) Next() bool { return a.next(']') }

// Index is the position of the present element, from 0.
func (a *Array) Index() int { return a.n - 1 }
