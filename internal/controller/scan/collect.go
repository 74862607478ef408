package scan

import (
	"context"
	"fmt"
	"time"
)

// objectCollector collects judged objects by namespace.
type objectCollector struct {
	ctx   context.Context // of the pass, not of the page: an object is judged whether or not its page comes to its end
	pass  *pass
	kind  kind
	order int // the kind's place among judgedKinds
	// since is how many pages of other kinds the selection has.
	since int

	raw      []byte // memory of the present object, used again for the next
	pending  []judgedObject
	findings map[string]*namespaceFindings
}

type judgedObject struct {
	namespace string
	verdict   *verdict
}

func (p *pass) newCollector(ctx context.Context, order int, k kind) *objectCollector {
	return &objectCollector{ctx: ctx, pass: p, kind: k, order: order, since: p.selection.pages}
}

func (c *objectCollector) restart() {
	c.findings = map[string]*namespaceFindings{}
	c.pass.selection.dropSince(c.since)
}

func (c *objectCollector) page() {
	c.pending = c.pending[:0]
	c.pass.selection.dropSince(c.pass.selection.pages)
}

func (c *objectCollector) add(raw []byte) error {
	began := time.Now()
	h, err := readHead(raw)
	if err != nil {
		return err
	}
	if err := belongs(&h, c.kind); err != nil {
		return err
	}
	c.raw = h.typed(c.raw[:0], raw, c.kind)
	j, err := c.pass.judge(c.ctx, c.raw)
	if err != nil {
		return err
	}
	v := newVerdict(c.kind, &h, &j)
	if err := c.pass.selection.add(h.namespace, c.order, v.results); err != nil {
		return err
	}
	v.results = nil // the selection has what may be listed
	c.pending = append(c.pending, judgedObject{h.namespace, v})
	return c.pass.pause(c.ctx, time.Since(began))
}

func (c *objectCollector) commit() {
	c.pass.selection.commit()
	for _, j := range c.pending {
		s := c.findings[j.namespace]
		if s == nil {
			s = &namespaceFindings{}
			c.findings[j.namespace] = s
		}
		s.take(j.verdict)
	}
}

// belongs refuses an object that cannot be in the list of its kind: its findings would go to the wrong report.
func belongs(h *head, k kind) error {
	if (h.namespace != "") != k.namespaced {
		return fmt.Errorf("the list of %s has an object of namespace %q", k.resource, h.namespace)
	}
	return nil
}
