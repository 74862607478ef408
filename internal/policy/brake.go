package policy

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/pipeguard/pipeguard/internal/policy/stack"
)

// OPA goes on with an evaluation from within each expression, and behind a function from within its body: the stack grows by every expression on the way
// to a result, not by what is written. A stack of 1 GiB ends the process, and nothing recovers from that. So the stack is measured before each expression,
// and what it takes is taken from the budget.
const (
	// freeStack is what an evaluation may take for nothing, in bytes.
	freeStack = 512 << 10
	// maxStack bounds the stack beside what the levels of comparisons were paid for, in bytes, see bear: OPA goes on from within those too. It grows by
	// doubling, so it is at most twice as long. Honest decisions stay far below it.
	maxStack = 8 << 20
)

var errDeep = fmt.Errorf("the evaluation takes more than %d MiB of stack: too many expressions lie on the way to one result", maxStack>>20)

// brake ends an evaluation in time, and before its stack is too long. OPA asks it before each expression, on the goroutine that evaluates.
type brake struct {
	flag    topdown.Cancel
	budget  *budget
	isShort bool  // no more than freeStack may be used, on a goroutine that lasts
	err     error // why the stack is too long
}

// errLong says that an evaluation needs a goroutine of its own.
var errLong = errors.New("the evaluation needs a longer stack")

// Cancel ends the evaluation.
func (b *brake) Cancel() { b.flag.Cancel() }

// Cancelled reports whether the evaluation is to end.
func (b *brake) Cancelled() bool {
	return b.flag.Cancelled() || b.err != nil || b.isTooDeep(stack.Used())
}

func (b *brake) isTooDeep(used int64) bool {
	switch {
	case used <= freeStack:
	case b.budget == nil:
		b.err = errUnbounded
	case b.isShort:
		b.err = errLong
	case used > b.budget.stack.borne:
		b.err = b.budget.takeStack(used)
	}
	return b.err != nil
}

// paidStack is what the stack of an evaluation was paid for, in bytes.
type paidStack struct {
	paid  int64
	borne int64 // with the levels of comparisons
}

// takeStack takes what a stack has of which so many bytes are used.
func (b *budget) takeStack(used int64) error {
	b.mu.Lock()
	b.knowInput(b.own)
	borne := b.levels * levelBytes
	b.mu.Unlock()
	rest := max(used-borne, freeStack)
	if rest > maxStack {
		return errDeep
	}
	size := int64(1) << bits.Len64(uint64(rest-1)) //nolint:gosec // freeStack and more
	if size > b.stack.paid {
		if err := b.take(size - b.stack.paid); err != nil {
			return err
		}
		b.stack.paid = size
	}
	b.stack.borne = b.stack.paid + borne
	return nil
}
