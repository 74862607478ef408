package evidence

// marks remember the tree at sizes of the past, so that growth since then can be proven without reading the log again. Each costs some dozen
// hashes. The caller guards it.
type marks struct {
	list []mark
}

// mark is the tree at one size and the leaves from there up to the next mark, or the present.
type mark struct {
	tree, after span
}

// maxMarks: a witness that is told every minute of a log that signs every second finds its mark among the newer half.
const maxMarks = 128

func (m *marks) append(s span) {
	if n := len(m.list); n > 0 && m.list[n-1].tree.end == s.end {
		return
	}
	m.list = append(m.list, mark{s.clone(), span{begin: s.end, end: s.end}})
	if len(m.list) > maxMarks {
		m.thin()
	}
}

// thin gives up every second one of the older half.
func (m *marks) thin() {
	var kept []mark
	for i, k := range m.list {
		if i < maxMarks/2 && i%2 == 1 {
			kept[len(kept)-1].after.join(k.after)
			continue
		}
		kept = append(kept, k)
	}
	m.list = kept
}

// grow adds a leaf to what is behind the last mark.
func (m *marks) grow(h [32]byte) {
	if n := len(m.list); n > 0 {
		m.list[n-1].after.append(h)
	}
}

// between returns the tree at one size and the leaves from there up to another, if both are marks.
func (m *marks) between(from, to uint64) (tree, after span, ok bool) {
	for i, k := range m.list {
		if k.tree.end != from {
			continue
		}
		tree, after = k.tree.clone(), span{begin: from, end: from}
		for _, next := range m.list[i:] {
			if after.end == to {
				return tree, after, true
			}
			after.join(next.after)
		}
		return tree, after, after.end == to
	}
	return span{}, span{}, false
}
