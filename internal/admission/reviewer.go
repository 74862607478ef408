package admission

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// Engine decides; *policy.Engine does.
type Engine interface {
	Active() (policy.Snapshot, bool)
	DecideAbout(ctx context.Context, s policy.Snapshot, sender turns.Sender, q policy.Question) (policy.Decision, error)
}

// NamespaceLabels knows the labels of namespaces.
type NamespaceLabels interface {
	// Labels returns the labels of a namespace; none if the namespace is not known. The caller does not change them.
	Labels(namespace string) map[string]string
}

// ReviewerOptions are the parts of a Reviewer.
type ReviewerOptions struct {
	// Engine decides. It is required. Its policies come from Policies.Bind: to those without a Scope everything is refused.
	Engine Engine
	// Namespaces supplies input.namespaceLabels; nil means that no namespace has labels.
	Namespaces NamespaceLabels
	// Pipes supplies warnings about pipes that no node serves; nil means that there are none.
	Pipes ServedPipes
	// Audit receives a record of each decision; nil means that none is kept.
	Audit audit.Writer
	// AuditRequired refuses an object whose record could not be written. Without it the failure is logged and counted
	// and the object passes: the webhook's records are a copy of what the API server's own audit log has in its
	// annotations, and a full pipe on stdout must not stop a cluster. A refusal stays a refusal either way.
	AuditRequired bool
	// Log receives diagnostics; nil means none.
	Log *zap.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// NewID makes decision ids; nil means 16 random letters and digits.
	NewID func() string
	// Metrics counts; nil means that nothing is counted.
	Metrics *Metrics
}

// Reviewer judges AdmissionReviews. Its methods may be called by many at once.
type Reviewer struct {
	o     ReviewerOptions
	desk  *intake.Desk
	turns *turns.Groups // of heavy reviews
}

// NewReviewer returns a Reviewer.
func NewReviewer(o ReviewerOptions) (*Reviewer, error) {
	if o.Engine == nil {
		return nil, errors.New("admission reviewer: option Engine is missing")
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return strings.ToLower(rand.Text()[:16]) } // 80 bits
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return &Reviewer{o, intake.New(intake.Limits{Keep: maxBody, Tenant: tenantOf}), turnsFor(runtime.GOMAXPROCS(0))}, nil
}
