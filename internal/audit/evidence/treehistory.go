package evidence

// treeHistory remembers the tree at sizes of the past, so that growth since then can be proven without reading the log again. Each costs some dozen
// hashes. The caller guards it.
type treeHistory struct {
	list []pastTree
}

// pastTree is the tree at one size and the leaves from there up to the next pastTree, or the present.
type pastTree struct {
	tree, after leafRange
}

// maxHistory: a witness that is told every minute of a log that signs every second finds its size among the newer half.
const maxHistory = 128

func (m *treeHistory) append(s leafRange) {
	if n := len(m.list); n > 0 && m.list[n-1].tree.end == s.end {
		return
	}
	m.list = append(m.list, pastTree{s.clone(), leafRange{begin: s.end, end: s.end}})
	if len(m.list) > maxHistory {
		m.thin()
	}
}

// thin drops every second one of the older half.
func (m *treeHistory) thin() {
	var kept []pastTree
	for i, k := range m.list {
		if i < maxHistory/2 && i%2 == 1 {
			kept[len(kept)-1].after.join(k.after)
			continue
		}
		kept = append(kept, k)
	}
	m.list = kept
}

// grow adds a leaf after the last remembered size.
func (m *treeHistory) grow(h [32]byte) {
	if n := len(m.list); n > 0 {
		m.list[n-1].after.append(h)
	}
}

// between returns the tree at one size and the leaves from there up to another, if both are remembered.
func (m *treeHistory) between(from, to uint64) (tree, after leafRange, ok bool) {
	for i, k := range m.list {
		if k.tree.end != from {
			continue
		}
		tree, after = k.tree.clone(), leafRange{begin: from, end: from}
		for _, next := range m.list[i:] {
			if after.end == to {
				return tree, after, true
			}
			after.join(next.after)
		}
		return tree, after, after.end == to
	}
	return leafRange{}, leafRange{}, false
}
