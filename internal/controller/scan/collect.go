package scan

import (
	"context"
	"fmt"
	"time"
)

// objectCollector collects judged objects by namespace.
type objectCollector struct {
	ctx  context.Context // of the pass, not of the page: an object is judged whether or not its page comes to its end
	pass *pass
	kind kind

	raw      []byte // memory of the present object, used again for the next
	pending  []judgedObject
	findings map[string]*namespaceFindings
}

type judgedObject struct {
	namespace string
	verdict   *verdict
}

func (c *objectCollector) restart() { c.findings = map[string]*namespaceFindings{} }

func (c *objectCollector) page() { c.pending = c.pending[:0] }

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
	c.pending = append(c.pending, judgedObject{h.namespace, newVerdict(c.kind, &h, &j)})
	return c.pass.pause(c.ctx, time.Since(began))
}

func (c *objectCollector) commit() {
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
