package scan

import (
	"context"
	"fmt"
)

// seen is what a look at the metadata of the objects of one namespace and kind shows.
type seen struct {
	objects digest
	number  int
}

// look collects metadata.
type look struct {
	kind    kind
	pending []head
	seen    map[string]seen
}

func (l *look) restart() { l.seen = map[string]seen{} }

func (l *look) page() { l.pending = l.pending[:0] }

func (l *look) add(raw []byte) error {
	h, err := readHead(raw)
	if err != nil {
		return err
	}
	if err := belongs(&h, l.kind, ""); err != nil {
		return err
	}
	l.pending = append(l.pending, head{namespace: h.namespace, uid: h.uid, version: h.version})
	return nil
}

func (l *look) commit() {
	for _, h := range l.pending {
		s := l.seen[h.namespace]
		s.objects.add(h.uid, h.version)
		s.number++
		l.seen[h.namespace] = s
	}
}

// judging collects judged objects by namespace.
type judging struct {
	ctx       context.Context // of the pass, not of the page: an object is judged whether or not its page comes to its end
	pass      *pass
	kind      kind
	namespace string // whose objects are listed, "" for all

	raw     []byte // memory of the present object, used again for the next
	pending []judged
	slots   map[string]*slot
}

type judged struct {
	head    head
	verdict *verdict
}

func (c *judging) restart() { c.slots = map[string]*slot{} }

func (c *judging) page() { c.pending = c.pending[:0] }

func (c *judging) add(raw []byte) error {
	h, err := readHead(raw)
	if err != nil {
		return err
	}
	if err := belongs(&h, c.kind, c.namespace); err != nil {
		return err
	}
	c.raw = h.typed(c.raw[:0], raw, c.kind)
	j, err := c.pass.judge(c.ctx, c.raw)
	if err != nil {
		return err
	}
	v := newVerdict(c.kind, &h, &j)
	c.pending = append(c.pending, judged{head{namespace: h.namespace, uid: h.uid, version: h.version}, v})
	return nil
}

func (c *judging) commit() {
	for _, j := range c.pending {
		s := c.slots[j.head.namespace]
		if s == nil {
			s = &slot{epoch: c.pass.state.epoch, labels: c.pass.namespaces[j.head.namespace].labels}
			c.slots[j.head.namespace] = s
		}
		s.take(&j.head, j.verdict)
	}
}

// belongs refuses an object that cannot be in the list: its findings would go to another namespace's report.
func belongs(h *head, k kind, namespace string) error {
	if (h.namespace != "") != k.namespaced || namespace != "" && h.namespace != namespace {
		return fmt.Errorf("the list of %s has an object of namespace %q", k.resource, h.namespace)
	}
	return nil
}

// namespace is what a pass knows of a namespace.
type namespace struct {
	labels        digest
	isTerminating bool
}

// namespaces collects the namespaces.
type namespaces struct {
	pending map[string]namespace
	found   map[string]namespace
}

func (n *namespaces) restart() { n.found = map[string]namespace{} }

func (n *namespaces) page() { n.pending = map[string]namespace{} }

func (n *namespaces) add(raw []byte) error {
	h, err := readHead(raw)
	if err != nil {
		return err
	}
	n.pending[h.name] = namespace{digestOf(h.labels), h.isTerminating}
	return nil
}

func (n *namespaces) commit() {
	for name, found := range n.pending {
		n.found[name] = found
	}
}
