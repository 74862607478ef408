package entries

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
)

// Answer is what became of an object that every policy refuses.
type Answer string

const (
	// Refused means that a replica of the webhook was asked by the entry and refused it by a rule.
	Refused Answer = "refused"
	// Admitted means that the webhook was not asked, or that the failure policy let the object pass.
	Admitted Answer = "admitted"
	// Unreachable means that the API server could not call the webhook.
	Unreachable Answer = "unreachable"
	// Undecided means that a replica of the webhook was asked by the entry and refused it for want of a decision.
	Undecided Answer = "undecided"
	// Floor means that the floor of the release refused it, before the webhook was asked.
	Floor Answer = "floor"
	// Other means that it was refused, but not by Pipeguard.
	Other Answer = "other"
	// None means that the API server could not be asked.
	None Answer = "none"
)

var (
	byWebhook  = regexp.MustCompile(`(?s)^admission webhook "([^"]*)" denied the request: (.*)$`)
	failedCall = regexp.MustCompile(`failed calling webhook "([^"]*)"`)
	// byFloor finds the policy. Any policy can have a message that begins like that of a floor, but no two have one name.
	byFloor = regexp.MustCompile(`^[a-z]+(?:\.[a-z]+)? "[^"]*" is forbidden: ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: ` + regexp.QuoteMeta(floor.RefusalBegins))
	// byRule finds the codes of the rules that refused, as messages begin lines with them.
	byRule = regexp.MustCompile(`(?m)^(PG\d{3}): `)
)

// AnswerTo classifies the API server's answer to the creation of an object that the webhook must refuse by an entry. It goes by the text with which
// the API server reports the answer of a webhook (ToStatusErr and ErrCallingWebhook of k8s.io/apiserver/pkg/admission/plugin/webhook) or of an
// admission policy. floors are the names of the policies of the release's floor; the refusal of another policy is Other, whatever it says.
func AnswerTo(err error, entry string, floors ...string) Answer {
	if err == nil {
		return Admitted
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return None
	}
	if apierrors.IsAlreadyExists(err) { // which is looked at behind admission
		return Admitted
	}
	text := status.ErrStatus.Message
	if m := byWebhook.FindStringSubmatch(text); m != nil && m[1] == entry {
		codes := byRule.FindAllStringSubmatch(m[2], -1)
		if slices.ContainsFunc(codes, func(code []string) bool { return code[1] != admission.CodeFailure }) {
			return Refused
		}
		return Undecided
	}
	if m := byFloor.FindStringSubmatch(text); m != nil && slices.Contains(floors, m[1]) {
		return Floor
	}
	switch m := failedCall.FindStringSubmatch(text); {
	case m != nil && strings.HasSuffix(m[1], Suffix):
		return Unreachable
	case strings.Contains(text, `" cannot create resource "`), !isRefusal(status):
		return None
	}
	return Other
}

// isRefusal tells a verdict from an API server, or a namespace, that is not there.
func isRefusal(s *apierrors.StatusError) bool {
	code := s.ErrStatus.Code
	return code >= 400 && code < 500 && !apierrors.IsNotFound(s) && !apierrors.IsTooManyRequests(s) && !apierrors.IsUnauthorized(s) && !apierrors.IsTimeout(s)
}
