package admission

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// What a policy is shown holds no number that it would not be given in another way.
func TestNumbersOfReviewsAreBoundedAsThoseOfPolicies(t *testing.T) {
	if jsonscan.MaxNumber != policy.MaxNumber {
		t.Errorf("reviews have numbers of %d bytes, policies of %d", jsonscan.MaxNumber, policy.MaxNumber)
	}
}
