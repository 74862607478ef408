package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
)

// Reasons for which there is no decision, beside those of package policy.
const (
	ReasonOperation = "operation"   // the operation is not one that is judged
	ReasonKind      = "kind"        // the kind is not one that is judged
	ReasonObject    = "object"      // the object cannot be read, or is of another kind than the request says
	ReasonScope     = "scope"       // the policies came without the guarded pipes that belong to them
	ReasonNoFinding = "unexplained" // the policy refuses and does not say why
	ReasonSize      = "size"        // the review is too large to be read, or would take too much memory
	ReasonAudit     = "audit"       // the record could not be written
	ReasonOverload  = string(policy.ReasonOverload)
	ReasonPanic     = string(policy.ReasonPanic)
)

// failure is why there is no decision. Every failure is a denial.
type failure struct {
	reason string
	status int32
	err    error
}

func (f *failure) Error() string { return f.reason + ": " + f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

func cannotJudge(reason string, status int32, err error) *failure {
	return &failure{reason: reason, status: status, err: err}
}

// judgement collects the results of the steps of a review.
type judgement struct {
	start     time.Time
	id        string
	snapshot  policy.Snapshot
	scope     *Scope
	input     *Input
	decision  policy.Decision
	unchanged bool
	static    bool
	plain     bool
	nodeName  string // that the object names for its pods
	allowance *jsonscan.Allowance
}

// Review judges one request. It never fails: what cannot be judged is refused, with CodeFailure and a reason.
// req is only read, and nothing of it is kept.
func (r *Reviewer) Review(ctx context.Context, req *admissionv1.AdmissionRequest) Result {
	res, _ := r.review(ctx, req, jsonscan.Allow(heavyReview), false)
	return res
}

// Explain judges as Review does, and leaves no trace. It also returns what the policies saw, with the subjects that each container is: nil for an object
// that holds nothing to decide, and for one that could not be judged.
func (r *Reviewer) Explain(ctx context.Context, req *admissionv1.AdmissionRequest) (Result, *Input) {
	res := r.Review(WithoutTrace(ctx), req)
	return res, res.input
}

// review judges one request with what is left of an allowance. If that is not enough for one that may be reviewed again with more, there is no
// result, and no trace of it.
func (r *Reviewer) review(ctx context.Context, req *admissionv1.AdmissionRequest, a *jsonscan.Allowance, again bool) (res Result, ok bool) {
	j := judgement{start: r.o.Now(), allowance: a}
	defer func() {
		if p := recover(); p != nil {
			r.o.Log.Error("panic while judging an object", zap.String(logkeys.UID, string(req.UID)),
				zap.Any(logkeys.Reason, p), zap.ByteString(logkeys.Stack, debug.Stack()))
			res = r.refuse(req, &j, cannotJudge(ReasonPanic, http.StatusForbidden, errors.New("an internal error; see the webhook's log")))
			if isTraced(ctx) {
				r.o.Metrics.decided(&res, false)
			}
			ok = true
		}
	}()
	relevant, fail := r.judge(ctx, req, &j)
	if again && a.Spent() {
		return Result{}, false
	}
	switch {
	case fail != nil && fail.reason == string(policy.ReasonCanceled): // the caller has left
		return r.refuse(req, &j, fail), true
	case fail != nil:
		res = r.refuse(req, &j, fail)
		if isTraced(ctx) { // else the caller reports it
			r.o.Log.Warn("object refused without a decision", zap.String(logkeys.UID, string(req.UID)),
				zap.String(logkeys.AuditID, res.DecisionID), zap.String(logkeys.Reason, fail.reason), zap.Error(fail.err))
		}
	case !relevant:
		res = r.pass(&j)
	default:
		res = r.present(&j)
		if !isTraced(ctx) { // else they are not counted
			j.scope.otherModes(j.input, res.Details, j.start)
			res.input = j.input
		}
	}
	res.Plain = j.plain
	if !isTraced(ctx) {
		return res, true
	}
	if res.DecisionID != "" {
		r.record(ctx, req, &j, &res)
	}
	_, known := j.snapshotRule(res.Code)
	r.o.Metrics.decided(&res, known)
	return res, true
}

// judge fills j. It returns false, and no failure, for an object that holds nothing to decide.
func (r *Reviewer) judge(ctx context.Context, req *admissionv1.AdmissionRequest, j *judgement) (relevant bool, fail *failure) {
	if fail := supported(req); fail != nil {
		return false, fail
	}
	snapshot, ok := r.o.Engine.Active()
	if !ok {
		return false, cannotJudge(string(policy.ReasonNoPolicy), http.StatusForbidden, ErrNoPolicy)
	}
	j.snapshot = snapshot
	if j.scope = scopeOf(snapshot); j.scope == nil {
		return false, cannotJudge(ReasonScope, http.StatusForbidden, errNoScope)
	}
	obj, err := readObject(req.Object.Raw, req.Kind, j.allowance)
	if err != nil {
		return false, unreadable(err)
	}
	j.nodeName = obj.pod.nodeName
	e, err := extract(j.scope, &obj, j.allowance)
	if err != nil {
		return false, unreadable(err)
	}
	if j.plain = !isRelevant(&e, obj.podMeta()); j.plain && !snapshot.NeedsObject() {
		return false, nil
	}
	if j.input, err = j.scope.input(req, &obj, &e, r.o.Namespaces, j.start, j.allowance); err != nil {
		return true, unreadable(err)
	}
	if j.decision, fail = r.decide(ctx, j, j.input, req.Object.Raw); fail != nil {
		return true, fail
	}
	if len(denials(j.decision)) > 0 {
		j.static = isStatic(req, &obj)
		j.unchanged = r.isUnchanged(ctx, req, j, &obj)
	}
	return true, nil
}

// supported refuses the requests that the webhook configuration does not send. To answer them with yes would be a
// guess: only the operations and kinds listed here were thought through.
func supported(req *admissionv1.AdmissionRequest) *failure {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return cannotJudge(ReasonOperation, http.StatusForbidden,
			fmt.Errorf("operation %s is not judged here; the webhook configuration should send CREATE and UPDATE only",
				quote(string(req.Operation), maxName)))
	}
	if _, ok := judgedKindOf(req.Kind); !ok {
		return cannotJudge(ReasonKind, http.StatusForbidden,
			fmt.Errorf("kind %s is not judged here; the webhook configuration should not send it", quote(kindName(req.Kind), maxName)))
	}
	return nil
}

// decide asks the policy. The object goes along only if the policies read it.
func (r *Reviewer) decide(ctx context.Context, j *judgement, in *Input, raw []byte) (policy.Decision, *failure) {
	if j.allowance.Take(inputWeight(in, raw, j.snapshot.NeedsObject())) != nil {
		return policy.Decision{}, tooHeavy()
	}
	sender := senderOf(in.User.Name, in.Namespace)
	if !mayStay(ctx, sender) {
		return policy.Decision{}, cannotJudge(ReasonOverload, http.StatusForbidden, errNoPlace)
	}
	var object ast.Value
	if j.snapshot.NeedsObject() {
		var err error
		if object, err = objectValue(raw); err != nil {
			return policy.Decision{}, cannotJudge(ReasonObject, http.StatusBadRequest, err)
		}
	}
	start := time.Now()
	d, err := r.o.Engine.DecideAbout(ctx, j.snapshot, sender, inputQuestion{in, object})
	if isTraced(ctx) {
		r.o.Metrics.evaluated(time.Since(start))
	}
	if err != nil {
		reason := policy.ReasonInternal
		if e, ok := errors.AsType[*policy.Error](err); ok {
			reason, err = e.Reason, e.Err
		}
		return policy.Decision{}, cannotJudge(string(reason), http.StatusForbidden, err)
	}
	if !d.Allowed && len(denials(d)) == 0 {
		return policy.Decision{}, cannotJudge(ReasonNoFinding, http.StatusForbidden, errors.New("the policy refuses without a finding"))
	}
	return d, nil
}

// senderOf names a tenant by its user and its namespace. The cluster's own components act for all tenants, as a Deployment's controller does, and so does a service
// account in the namespaces of others: for them the namespace alone counts, else one tenant could have the others refused that have the same controller. No tenant
// can have their names: a service account's has its own namespace in it.
func senderOf(user, namespace string) turns.Sender {
	sender := turns.Sender{"namespace " + namespace}
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	home, _, _ := strings.Cut(account, ":")
	isController := isAccount && (home == metav1.NamespaceSystem || namespace != "" && home != namespace)
	if isController || !isAccount && strings.HasPrefix(user, "system:") {
		return sender
	}
	return append(sender, "user "+user)
}

// denials are the findings that refuse: all but those with an effect that is known to let pass.
func denials(d policy.Decision) []policy.Finding {
	return slices.DeleteFunc(slices.Clone(d.Findings), func(f policy.Finding) bool { return !refuses(f) })
}

func refuses(f policy.Finding) bool {
	return f.Effect != policy.EffectWarn && f.Effect != policy.EffectAudit
}

func (j *judgement) snapshotRule(code string) (policy.Rule, bool) {
	if j.snapshot == (policy.Snapshot{}) {
		return policy.Rule{}, false
	}
	return j.snapshot.Rule(code)
}
