package scan

import (
	"cmp"
	"context"
	"time"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Judge judges one object, given as JSON with apiVersion and kind, as if it were created now. raw is valid during the
// call only. An error means that the object could not be judged; the report says so.
type Judge func(ctx context.Context, raw []byte) (Judged, error)

// Judged is what the policies say of one object.
type Judged struct {
	// Revision is that of the policies that judged.
	Revision string
	// Findings are what they found.
	Findings []Finding
	// Failure says why there is no judgement; it is empty if there is one. It must be the same each time that the same
	// object fails in the same way.
	Failure string
	// Passing is true if the failure has to do with the moment, such as too much work at once: another attempt may succeed.
	Passing bool
}

// Finding is one thing that the policies have to say about an object.
type Finding struct {
	admission.Detail
	// Known is true if the policies describe the code. Others may be computed, and are counted together.
	Known bool
	// Severity is what the rule's METADATA says.
	Severity string
}

// Effects in reports, from the one to look at first.
const (
	effectDeny  = "deny"
	effectError = "error"
	effectWarn  = "warn"
	effectAudit = "audit"
)

// judgeAttempts bounds how often an object is judged whose failure is one of the moment, and patience how often a whole
// pass waits for that: if nothing can be judged any more, ten thousand waits would not help.
const (
	judgeAttempts = 4
	patience      = 100
)

// judge judges raw, again if the failure is of the moment. An error ends the pass.
func (p *pass) judge(ctx context.Context, raw []byte) (Judged, error) {
	wait := p.options.RetryAfter / 10
	for attempt := 1; ; attempt++ {
		j, err := p.options.Judge(ctx, raw)
		if ctx.Err() != nil { // what failed may have failed for this alone
			return Judged{}, context.Cause(ctx)
		}
		if err != nil {
			j = Judged{Failure: cmp.Or(err.Error(), "there is no judgement")}
		}
		if j.Revision != "" && j.Revision != p.revision {
			return Judged{}, errSuperseded
		}
		if j.Failure == "" || !j.Passing || attempt == judgeAttempts || p.waited == patience {
			return j, nil
		}
		p.waited++
		if !periodic.Sleep(ctx, wait) {
			return Judged{}, context.Cause(ctx)
		}
		wait *= 2
	}
}

// turn is how long a pass judges before it leaves the processor to reviews for as long: where there is one processor,
// a review that comes during a pass waits for a turn and not for the whole page.
const turn = 2 * time.Millisecond

// pause ends the pass's turn if that is over; took is the time that an object took.
func (p *pass) pause(ctx context.Context, took time.Duration) error {
	if p.busy += took; p.busy < turn {
		return nil
	}
	p.busy = 0
	periodic.Sleep(ctx, turn)
	return context.Cause(ctx)
}
