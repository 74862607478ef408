package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// attempt is everything that goes into one activation.
type attempt struct {
	base   policy.Modules
	params admission.Parameters
	policyObjects
}

// hash names what an attempt is about: equal inputs have equal hashes on every replica. It is of the inputs and not of the
// modules that they become, so that it is known also where nothing comes of them.
func (a attempt) hash() (string, error) {
	type spec struct {
		Name    string
		Spec    any
		Unknown string `json:",omitempty"`
	}
	content := struct {
		Files      map[string]string
		Data       map[string]any
		Parameters admission.Parameters
		Pipes      []spec
		Modules    []spec
	}{Files: a.base.Files, Data: a.base.Data, Parameters: a.params}
	for i := range a.pipes {
		content.Pipes = append(content.Pipes, spec{a.pipes[i].Name, a.pipes[i].Spec, a.pipes[i].Unknown})
	}
	for i := range a.modules {
		content.Modules = append(content.Modules, spec{a.modules[i].Name, a.modules[i].Spec, a.modules[i].Unknown})
	}
	text, err := json.Marshal(content) // sorts keys
	if err != nil {
		return "", fmt.Errorf("encode what decides: %w", err)
	}
	return shortHash(text), nil
}

// shortHash is long enough to tell attempts apart. Nothing is permitted because two are equal.
func shortHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// unreadError is why an attempt ended before anything was compiled, for a reason that lies in no policy object.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// passing reports whether an attempt should be made again although its content is the same.
func passing(err error) bool {
	if _, ok := errors.AsType[*unreadError](err); ok {
		return true
	}
	return ranOutOfTime(err)
}

// ranOutOfTime reports whether an error speaks of the machine's load rather than of the policies.
func ranOutOfTime(err error) bool {
	own, ok := errors.AsType[*policy.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || (ok && own.Reason == policy.ReasonTimeout)
}

// assembler is the type of Options.Assemble.
type assembler = func(policy.Modules, admission.Parameters, []v1alpha1.PipePolicy, []v1alpha1.PolicyModule) (policy.Modules, error)
