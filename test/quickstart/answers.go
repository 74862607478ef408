package main

import (
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

// kubectl writes an answer the way kubectl prints it; doing says what kubectl was about to do.
func kubectl(doing string, r *admissionv1.AdmissionResponse) string {
	var b strings.Builder
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", warning)
	}
	switch {
	case r.Allowed:
		b.WriteString("admitted\n")
	case r.Result == nil:
		b.WriteString("denied without a word\n")
	default:
		fmt.Fprintf(&b, "Error from server (%s): %sadmission webhook \"pods.pipeguard.dev\" denied the request: %s\n",
			r.Result.Reason, doing, r.Result.Message)
	}
	return b.String()
}

// refused checks that an answer is a denial with a code, and that the message names each of the words.
func refused(r *admissionv1.AdmissionResponse, words ...string) error {
	if r.Allowed {
		return errors.New("it was admitted")
	}
	if r.Result == nil || r.Result.Message == "" {
		return errors.New("it was refused without a message")
	}
	for _, word := range words {
		if !strings.Contains(r.Result.Message, word) {
			return fmt.Errorf("the message does not mention %q", word)
		}
	}
	if r.Result.Details == nil || len(r.Result.Details.Causes) == 0 {
		return errors.New("the denial names no cause with a field")
	}
	return nil
}

// admitted checks that an answer is an admission with exactly so many warnings.
func admitted(r *admissionv1.AdmissionResponse, warnings int) error {
	if !r.Allowed {
		return errors.New("it was refused")
	}
	if len(r.Warnings) != warnings {
		return fmt.Errorf("it carries %d warnings, %d expected: %q", len(r.Warnings), warnings, r.Warnings)
	}
	return nil
}
