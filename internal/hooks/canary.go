package hooks

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is what became of the canary.
type answer string

const (
	// answerRefused means that a replica of the webhook was asked and refused it by a rule.
	answerRefused answer = "refused"
	// answerAdmitted means that nobody was asked, or the failure policy let it pass.
	answerAdmitted answer = "admitted"
	// answerUnreachable means that the API server could not call the webhook.
	answerUnreachable answer = "unreachable"
	// answerOther means that it was refused, but not by a rule of the webhook.
	answerOther answer = "other"
	// answerNone means that the API server could not be asked.
	answerNone answer = "none"
)

var answers = []answer{answerRefused, answerAdmitted, answerUnreachable, answerOther, answerNone}

// canaryEntry is the entry that is to ask about the canary.
const canaryEntry = firstEntry + domain

// answerOf tells what the API server's answer to the canary means, by the text with which it reports the answer of a webhook
// (ToStatusErr and ErrCallingWebhook of k8s.io/apiserver/pkg/admission/plugin/webhook).
func answerOf(err error) answer {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil:
		return answerAdmitted
	case !ok:
		return answerNone
	}
	message := status.ErrStatus.Message
	switch {
	case strings.HasPrefix(message, `admission webhook "`+canaryEntry+`" denied the request: Pipeguard refuses `):
		return answerRefused
	case strings.Contains(message, `failed calling webhook "`+canaryEntry+`"`):
		return answerUnreachable
	case strings.Contains(message, `cannot create resource "podtemplates"`), !isRefusal(status):
		return answerNone
	}
	return answerOther
}

// isRefusal tells a verdict from an API server, or a namespace, that is not there.
func isRefusal(s *apierrors.StatusError) bool {
	code := s.ErrStatus.Code
	return code >= 400 && code < 500 && !apierrors.IsNotFound(s) && !apierrors.IsTooManyRequests(s) && !apierrors.IsUnauthorized(s) && !apierrors.IsTimeout(s)
}
