package token

import (
	"context"
	"encoding/json"
	"slices"
)

// The keys of a reviewed user's extra fields (k8s.io/apiserver/pkg/authentication/serviceaccount).
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
	extraNode    = "authentication.kubernetes.io/node-name"
)

const (
	tokenReviewPath = "/apis/authentication.k8s.io/v1/tokenreviews"
	tokenReviewKind = "TokenReview"
	tokenReviewAPI  = "authentication.k8s.io/v1"
)

// review is a review of the API server, as far as it is used: the question, and with a status the answer.
type review[Spec, Status any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       Spec   `json:"spec"`
	Status     Status `json:"status,omitzero"`
}

// ask has the API server answer a question.
func ask[Spec, Status any](ctx context.Context, c *client, path string, question review[Spec, Status]) (status Status, refusal *Refusal) {
	body, err := json.Marshal(question)
	if err != nil {
		return status, unavailable("no review could be written", nil)
	}
	var answer review[Spec, Status]
	if err := c.create(ctx, path, body, &answer); err != nil {
		return status, unavailable("the API server did not answer with a "+question.Kind, err)
	}
	if answer.Kind != question.Kind || answer.APIVersion != question.APIVersion {
		return status, unavailable("the API server answered with something else than a review", nil)
	}
	return answer.Status, nil
}

// tokenReview is authentication.k8s.io/v1 TokenReview, as far as it is used.
type tokenReview = review[tokenReviewSpec, tokenReviewStatus]

type tokenReviewSpec struct {
	Token     string   `json:"token"`
	Audiences []string `json:"audiences"`
}

type tokenReviewStatus struct {
	Authenticated bool     `json:"authenticated"`
	User          userInfo `json:"user"`
	Audiences     []string `json:"audiences"`
	Error         string   `json:"error"`
}

type userInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// review asks the API server about a token, and compares its answer with what the token says of itself.
func (c *client) review(ctx context.Context, text Secret, audience string, id Identity) *Refusal {
	status, refusal := ask(ctx, c, tokenReviewPath, tokenReview{
		APIVersion: tokenReviewAPI, Kind: tokenReviewKind, Spec: tokenReviewSpec{string(text), []string{audience}},
	})
	if refusal != nil {
		return refusal
	}
	return status.check(audience, id)
}

// check is the answer's whole reading. An API server that knows no audiences leaves them out: then the token was
// compared with the API server's own, and is not proven to be for this proxy.
func (s tokenReviewStatus) check(audience string, id Identity) *Refusal {
	switch {
	case !s.Authenticated:
		return refuse(Rejected, "the API server does not accept it (expired, revoked, of another cluster, or made up)")
	case s.Error != "":
		return refuse(Rejected, "the API server accepts it and reports an error")
	case !slices.Contains(s.Audiences, audience):
		return refuse(WrongTarget, "the API server does not confirm that it is made for the audience %q", audience)
	case s.User.Username != id.Username():
		return refuse(Rejected, "the API server knows it as another user's than the one it names")
	}
	for _, field := range []struct{ key, value string }{{extraPodName, id.PodName}, {extraPodUID, id.PodUID}, {extraNode, id.Node}} {
		if values := s.User.Extra[field.key]; len(values) != 1 || values[0] != field.value {
			return refuse(Rejected, "the API server does not confirm its %s", field.key)
		}
	}
	return nil
}
