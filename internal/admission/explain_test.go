package admission

import (
	"testing"
)

// What is explained is what the policies saw; an object with nothing to decide has nothing to explain.
func TestExplainReturnsWhatThePoliciesSaw(t *testing.T) {
	r := newReviewer(t, DefaultParameters())
	req, err := ObjectReview([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{
  "containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"x"}]}],"volumes":[{"name":"v","hostPath":{"path":"\\\\.\\pipe\\csi-proxy-disk-v1"}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	res, in := r.Explain(t.Context(), req)
	if res.Allowed || in == nil || len(in.Mounts) != 1 || in.Mounts[0].Pipe != "csi-proxy-disk-v1" || in.Mounts[0].Access == nil {
		t.Errorf("allowed %t, input %+v", res.Allowed, in)
	}
	if req, err = ObjectReview([]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","image":"i"}]}}`)); err != nil {
		t.Fatal(err)
	}
	if res, in := r.Explain(t.Context(), req); !res.Allowed || in != nil {
		t.Errorf("allowed %t, input %+v", res.Allowed, in)
	}
}
