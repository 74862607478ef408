package admission

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/turns"
	"github.com/pipeguard/pipeguard/test/pods"
)

const csiPipe = `\\.\pipe\csi-proxy-filesystem-v1`

// envelopeWith is a review whose request has the given members beside a uid.
func envelopeWith(members string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"review-uid",` + members + `}}`
}

// podReview is a review of the creation of object.
func podReview(object string) string {
	return envelopeWith(`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"namespace":"team-a","object":` + object)
}

// reviewOf is a review of the creation of an object of any kind.
func reviewOf(kind metav1.GroupVersionKind, object string) string {
	return envelopeWith(fmt.Sprintf(`"operation":"CREATE","kind":{"group":%q,"version":%q,"kind":%q},"namespace":"team-a","object":%s`,
		kind.Group, kind.Version, kind.Kind, object))
}

const emptyPod = `{"apiVersion":"v1","kind":"Pod"}`

func TestServeHTTPRefusesWhatIsNotAReview(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	good := string(reviewBody(t, createRequest(t, testPod())))
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"an empty body":                         {"", 400},
		"white space":                           {"  \n", 400},
		"the JSON null":                         {"null", 400},
		"a JSON array":                          {"[]", 400},
		"malformed JSON":                        {`{"apiVersion":`, 400},
		"a review that is cut off":              {good[:len(good)-2], 400},
		"a review with bytes after it":          {good + "x", 400},
		"two reviews":                           {good + good, 400},
		"another kind":                          {`{"apiVersion":"v1","kind":"Pod","request":{"uid":"u"}}`, 400},
		"a version that is gone":                {strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400},
		"no apiVersion":                         {strings.Replace(good, `"apiVersion":"admission.k8s.io/v1",`, "", 1), 400},
		"no request":                            {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400},
		"a null request":                        {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, 400},
		"a request that is a string":            {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":"x"}`, 400},
		"no uid":                                {strings.Replace(good, `"uid":"review-uid",`, "", 1), 400},
		"an empty uid":                          {strings.Replace(good, `"uid":"review-uid"`, `"uid":""`, 1), 400},
		"a uid of a thousand bytes":             {strings.Replace(good, `"uid":"review-uid"`, `"uid":"`+strings.Repeat("u", 1000)+`"`, 1), 400},
		"a uid that is a number":                {strings.Replace(good, `"uid":"review-uid"`, `"uid":7`, 1), 400},
		"two uids":                              {strings.Replace(good, `"uid":"review-uid"`, `"uid":"review-uid","uid":"other"`, 1), 400},
		"two objects":                           {podReview(emptyPod + `,"object":` + emptyPod), 400},
		"two requests":                          {strings.Replace(good, `"request":`, `"request":{},"request":`, 1), 400},
		"keys in another case":                  {strings.Replace(good, `"request":`, `"Request":`, 1), 400},
		"invalid UTF-8":                         {strings.Replace(good, "team-a", "team-\xff", 1), 400},
		"an object that is a list":              {podReview(`[]`), 400},
		"an object that is a string":            {podReview(`"Pod"`), 400},
		"three megabytes of junk":               {strings.Repeat("x", maxBody), 400},
		"three megabytes of junk in a review":   {podReview(`{"apiVersion":"v1","kind":"Pod","x":"` + strings.Repeat("x", maxBody-1000) + `}`), 400},
		"one byte more than three megabytes":    {strings.Repeat(" ", maxBody) + "x", 413},
		"a byte order mark":                     {"\ufeff" + good, 400},
		"UTF-16":                                {utf16le(good), 400},
		"a review and a NUL byte":               {good + "\x00", 400},
		"a hundred thousand groups of the user": {strings.Replace(good, `"groups":[`, `"groups":[`+strings.Repeat(`"",`, 100_000), 1), 400},
		"a hundred thousand open brackets":      {podReview(strings.Repeat("[", 100_000)), 400},
		"an object nested a thousand deep":      {podReview(strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)), 400},
		"a million open objects in the review":  {strings.Repeat(`{"request":`, 250_000), 400},
	} {
		t.Run(name, func(t *testing.T) {
			if status, answer := post(t, r, []byte(c.body)); status != c.want {
				t.Errorf("status %d, answer %v; want status %d", status, answer, c.want)
			}
		})
	}
	if status, answer := post(t, r, []byte(good)); status != 200 || !answer.Allowed {
		t.Errorf("the review that the cases are made from: status %d, %v; want it allowed", status, answer)
	}
}

func utf16le(s string) string {
	out := make([]byte, 0, 2*len(s)+2)
	for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return string(out)
}

func TestServeHTTPRefusesRequestsThatCannotBeJudged(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for name, c := range map[string]struct {
		members string
		code    int32
		reason  string
	}{
		"an object that is null": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"object":null`, 400, ReasonObject},
		"no object":              {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"}`, 400, ReasonObject},
		"an object of another kind": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},
			"object":{"apiVersion":"apps/v1","kind":"Deployment"}`, 400, ReasonObject},
		"an object that does not say its kind": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},"object":{}`, 400, ReasonObject},
		"an object that is half a Pod": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},
			"object":{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"name":"v","hostPath":"C:\\"}]}}`, 400, ReasonObject},
		"a Pod with two specs": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},
			"object":{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"hostPath":{"path":"x"}}]},"spec":{}}`, 400, ReasonObject},
		"a mount with subPath and subPathExpr": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"Pod"},
			"object":{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"hostPath":{"path":"x"}}],"containers":[{"volumeMounts":[{"subPath":"a","subPathExpr":"b"}]}]}}`, 400, ReasonObject},
		"a kind that is not judged": {`"operation":"CREATE","kind":{"group":"apps","version":"v1","kind":"ControllerRevision"},
			"object":{"apiVersion":"apps/v1","kind":"ControllerRevision"}`, 403, ReasonKind},
		"a version that is not judged": {`"operation":"CREATE","kind":{"group":"apps","version":"v1beta2","kind":"Deployment"},
			"object":{"apiVersion":"apps/v1beta2","kind":"Deployment"}`, 403, ReasonKind},
		"a Deployment with two templates": {`"operation":"CREATE","kind":{"group":"apps","version":"v1","kind":"Deployment"},
			"object":{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"volumes":[{"hostPath":{"path":"x"}}]}},"template":{}}}`, 400, ReasonObject},
		"a template with two sets of annotations": {`"operation":"CREATE","kind":{"group":"apps","version":"v1","kind":"Deployment"},
			"object":{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"metadata":{"annotations":{"microsoft.com/x":"y"}},"metadata":{}}}}`, 400, ReasonObject},
		"a CronJob whose template is a list": {`"operation":"CREATE","kind":{"group":"batch","version":"v1","kind":"CronJob"},
			"object":{"apiVersion":"batch/v1","kind":"CronJob","spec":{"jobTemplate":{"spec":{"template":[{"hostPath":1}]}}}}`, 400, ReasonObject},
		"a PersistentVolume with two paths": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"PersistentVolume"},
			"object":{"apiVersion":"v1","kind":"PersistentVolume","spec":{"local":{"path":"x","\u0070ath":"y"}}}`, 400, ReasonObject},
		"a PersistentVolume with two claims": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"PersistentVolume"},
			"object":{"apiVersion":"v1","kind":"PersistentVolume","spec":{"local":{"path":"x"},"claimRef":{},"claimRef":{}}}`, 400, ReasonObject},
		"a PersistentVolume whose path is a list": {`"operation":"CREATE","kind":{"group":"","version":"v1","kind":"PersistentVolume"},
			"object":{"apiVersion":"v1","kind":"PersistentVolume","spec":{"hostPath":{"path":["x"]}}}`, 400, ReasonObject},
		"a Pod of another group": {`"operation":"CREATE","kind":{"group":"example.com","version":"v1","kind":"Pod"},
			"object":{"apiVersion":"example.com/v1","kind":"Pod"}`, 403, ReasonKind},
		"no kind":               {`"operation":"CREATE","object":` + emptyPod, 403, ReasonKind},
		"a deletion":            {`"operation":"DELETE","kind":{"group":"","version":"v1","kind":"Pod"},"object":` + emptyPod, 403, ReasonOperation},
		"a connection":          {`"operation":"CONNECT","kind":{"group":"","version":"v1","kind":"Pod"},"object":` + emptyPod, 403, ReasonOperation},
		"no operation":          {`"kind":{"group":"","version":"v1","kind":"Pod"},"object":` + emptyPod, 403, ReasonOperation},
		"an operation in lower": {`"operation":"create","kind":{"group":"","version":"v1","kind":"Pod"},"object":` + emptyPod, 403, ReasonOperation},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := post(t, r, []byte(envelopeWith(c.members)))
			if status != 200 || answer.Allowed {
				t.Fatalf("status %d, answer %v; want a refusal", status, answer)
			}
			if answer.UID != "review-uid" {
				t.Errorf("uid %q is not the request's", answer.UID)
			}
			if got := answer.Result.Code; got != c.code {
				t.Errorf("code %d, want %d", got, c.code)
			}
			if want := CodeFailure + ": Pipeguard refuses what it cannot judge (" + c.reason + "): "; !strings.HasPrefix(answer.Result.Message, want) {
				t.Errorf("message %q does not begin with %q", answer.Result.Message, want)
			}
			if got := answer.AuditAnnotations[annotationCodes]; got != CodeFailure {
				t.Errorf("annotated with codes %q, want %q", got, CodeFailure)
			}
		})
	}
}

func TestServeHTTPRefusesOtherMethodsAndContentTypes(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	body := reviewBody(t, createRequest(t, testPod()))
	for _, c := range []struct {
		method, content string
		want            int
	}{
		{http.MethodGet, "application/json", 405},
		{http.MethodPut, "application/json", 405},
		{http.MethodPost, "", 415},
		{http.MethodPost, "text/plain", 415},
		{http.MethodPost, "application/json-patch+json", 415},
		{http.MethodPost, "application/vnd.kubernetes.protobuf", 415},
		{http.MethodPost, "application/json", 200},
		{http.MethodPost, "application/json; charset=utf-8", 200},
	} {
		req := httptest.NewRequestWithContext(t.Context(), c.method, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", c.content)
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, req); w.Code != c.want {
			t.Errorf("%s with content type %q: status %d, want %d", c.method, c.content, w.Code, c.want)
		}
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestServeHTTPRefusesBodiesThatBreakOffOrHideTheirSize(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for want, body := range map[int]io.Reader{
		400: brokenBody{},
		413: io.MultiReader(strings.NewReader(strings.Repeat(" ", maxBody)), strings.NewReader("{}")), // no Content-Length
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, req); w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
}

func TestServeHTTPTurnsAwayMoreRequestsAtOnceThanItHasPlacesFor(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	r.desk = intake.New(intake.Limits{Places: 1})
	place, err := r.desk.Read(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("x")), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := post(t, r, reviewBody(t, createRequest(t, testPod()))); status != 503 {
		t.Errorf("status %d with all places taken, want 503", status)
	}
	place.Leave()
	if status, _ := post(t, r, reviewBody(t, createRequest(t, testPod()))); status != 200 {
		t.Errorf("status %d with one place free, want 200", status)
	}
}

func TestAReviewThatIsTooLargeIsRefusedByVerdict(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	for name, object := range map[string]string{
		"one string":      `{"apiVersion":"v1","kind":"Pod","x":"` + strings.Repeat("x", maxBody) + `"}`,
		"many volumes":    `{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[` + strings.Repeat(`{"name":"v","hostPath":{"path":"/x"}},`, 200_000) + `{}]}}`,
		"beyond all else": `{"x":"` + strings.Repeat("x", 20*maxBody) + `"}`,
	} {
		status, answer := post(t, r, []byte(podReview(object)))
		if status != 200 || answer.Allowed || answer.UID != "review-uid" || !strings.Contains(answer.Result.Message, "("+ReasonSize+")") {
			t.Errorf("%s: status %d, %+v", name, status, answer)
		}
	}
	if got := r.desk.String(); got != "0 unread with 0 bytes, 0 judged, 0 bytes in all" {
		t.Error(got)
	}
}

// faultyEngine answers in the way that an engine should not.
type faultyEngine struct {
	*policy.Engine
	decide func() (policy.Decision, error)
}

func (e faultyEngine) DecideAbout(context.Context, policy.Snapshot, turns.Sender, policy.Question) (policy.Decision, error) {
	return e.decide()
}

func TestAReviewWhoseClientLeavesIsNotRecorded(t *testing.T) {
	kept, reg := &ledger{}, prometheus.NewRegistry()
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Audit, o.Metrics = kept, NewMetrics(reg)
		o.Engine = faultyEngine{newEngine(t, DefaultParameters(), nil), func() (policy.Decision, error) {
			return policy.Decision{}, &policy.Error{Reason: policy.ReasonCanceled, Err: context.Canceled}
		}}
	})
	if _, answer := post(t, r, reviewBody(t, createRequest(t, testPod(csiPipe)))); answer.Allowed {
		t.Error("it is allowed")
	}
	if got := counter(t, reg, "pipeguard_admission_decisions_total", "code=PG999 effect=deny"); got != 0 || len(kept.events) != 0 {
		t.Errorf("%v refusals are counted, and there are %d records", got, len(kept.events))
	}
}

func TestNoErrorOfTheEngineAllows(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), nil)
	snapshot, _ := engine.Active()
	idle, err := policy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		engine Engine
		reason string
	}{
		"no policy is active": {idle, "no_policy"},
		"a time-out": {faultyEngine{engine, func() (policy.Decision, error) {
			return policy.Decision{}, &policy.Error{Reason: policy.ReasonTimeout, Err: context.DeadlineExceeded}
		}}, "timeout"},
		"an error of an unknown sort, with a decision that allows": {faultyEngine{engine, func() (policy.Decision, error) {
			return policy.Decision{Allowed: true, Revision: snapshot.Revision()}, errors.New("who knows")
		}}, "internal"},
		"a panic": {faultyEngine{engine, func() (policy.Decision, error) { panic("oh") }}, "panic"},
		"a refusal without a finding": {faultyEngine{engine, func() (policy.Decision, error) {
			return policy.Decision{Revision: snapshot.Revision()}, nil
		}}, "unexplained"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = c.engine })
			_, answer := post(t, r, reviewBody(t, createRequest(t, testPod(csiPipe))))
			if answer.Allowed {
				t.Fatal("the object was admitted")
			}
			if want := fmt.Sprintf("%s: Pipeguard refuses what it cannot judge (%s)", CodeFailure, c.reason); !strings.HasPrefix(answer.Result.Message, want) {
				t.Errorf("message %q does not begin with %q", answer.Result.Message, want)
			}
			if answer.Result.Code != 403 || answer.Result.Reason != "Forbidden" {
				t.Errorf("status %d %s, want 403 Forbidden", answer.Result.Code, answer.Result.Reason)
			}
		})
	}
}

func TestADecisionThatAllowsWithAnEffectThatNobodyKnowsIsARefusal(t *testing.T) {
	engine := newEngine(t, DefaultParameters(), nil)
	snapshot, _ := engine.Active()
	for _, effect := range []policy.Effect{policy.EffectDeny, "", "Warn", "allow"} {
		r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
			o.Engine = faultyEngine{engine, func() (policy.Decision, error) {
				return policy.Decision{Allowed: true, Revision: snapshot.Revision(), Findings: []policy.Finding{{Code: "X1", Effect: effect}}}, nil
			}}
		})
		if res := r.Review(t.Context(), createRequest(t, testPod(csiPipe))); res.Allowed || res.Effect != EffectDeny {
			t.Errorf("effect %q: allowed %t, %s", effect, res.Allowed, res.Effect)
		}
	}
}

func TestWithoutAPolicyEvenAnObjectWithNothingToDecideIsRefused(t *testing.T) {
	idle, err := policy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = idle })
	if _, answer := post(t, r, reviewBody(t, createRequest(t, pods.Plain(t)))); answer.Allowed {
		t.Error("it was admitted")
	}
}

func TestThousandContainersAreJudgedOneByOne(t *testing.T) {
	p := testPod()
	p.Spec.Volumes = []corev1.Volume{{Name: "pipe", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: csiPipe}}}}
	p.Spec.Containers = nil
	for i := range 1000 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i)})
	}
	p.Spec.Containers[999].VolumeMounts = []corev1.VolumeMount{{Name: "pipe", MountPath: "x"}}
	r := newReviewer(t, DefaultParameters())
	_, answer := post(t, r, reviewBody(t, createRequest(t, p)))
	if answer.Allowed || len(answer.Result.Details.Causes) != 1 ||
		answer.Result.Details.Causes[0].Field != "spec.containers[999].volumeMounts[0]" {
		t.Errorf("answer %+v, want a refusal of the last container's mount", answer.Result)
	}

	p.Spec.Containers = p.Spec.Containers[900:]
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].VolumeMounts = p.Spec.Containers[99].VolumeMounts
	}
	_, answer = post(t, r, reviewBody(t, createRequest(t, p)))
	if answer.Allowed || len(answer.Result.Details.Causes) != maxCauses || len(answer.Result.Message) > 5000 {
		t.Errorf("%d causes and a message of %d bytes; want %d causes and a message that a person would read",
			len(answer.Result.Details.Causes), len(answer.Result.Message), maxCauses)
	}
	if !strings.Contains(answer.Result.Message, "\nand 90 more.") {
		t.Errorf("message does not count the rest:\n%s", answer.Result.Message)
	}
}

// TestAnObjectOfWrongTypesIsRefused holds that a value where another type belongs is no object without volumes.
func TestAnObjectOfWrongTypesIsRefused(t *testing.T) {
	h := newReviewer(t, DefaultParameters())
	for _, kind := range Kinds() {
		k, _ := judgedKindOf(kind)
		// at wraps a value in the keys of the path, all but the last n.
		at := func(n int, value string) string {
			path := k.path[:len(k.path)-n]
			object := value
			for i := len(path) - 1; i >= 0; i-- {
				object = fmt.Sprintf(`{%q:%s}`, path[i], object)
			}
			return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},%s`, apiVersionOf(kind), kind.Kind, object[1:])
		}
		objects := map[string]bool{at(0, `{}`): true, at(0, `null`): true}
		for n := range k.path {
			for _, value := range []string{`"x"`, `["x"]`, `5`, `true`} {
				objects[at(n, value)] = false
			}
		}
		if k.holdsPods() {
			for _, list := range []string{"volumes", "containers", "initContainers", "ephemeralContainers"} {
				for _, value := range []string{`"x"`, `{}`, `5`, `false`, `["x"]`, `[{},"x"]`, `[[]]`, `[{},5]`} {
					objects[at(0, fmt.Sprintf(`{%q:%s}`, list, value))] = false
				}
				objects[at(0, fmt.Sprintf(`{%q:[{},null]}`, list))] = true
			}
			objects[at(0, `{"containers":[{"volumeMounts":"x"}]}`)] = false
			objects[at(0, `{"volum\u0065s":"x"}`)] = false
			objects[at(0, `{"nodeSelector":{"spec":"x","volumes":"y","containers":"z"}}`)] = true
		}
		for object, want := range objects {
			status, answer := post(t, h, []byte(reviewOf(kind, object)))
			if status != http.StatusOK || answer.Allowed != want {
				t.Errorf("%s: status %d, %+v; want allowed: %t", object, status, answer, want)
			} else if !want && !strings.Contains(answer.Result.Message, "is expected") {
				t.Errorf("%s: the reason is not said: %s", object, answer.Result.Message)
			}
		}
	}
}
