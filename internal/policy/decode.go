package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Bounds of a decision. It becomes a response of the API server, an audit event and log lines, none of which may be
// as large as a policy likes.
const (
	maxFindings = 1024 // that are told; more than the mounts of any pod that the API server takes in practice
	maxField    = 1024 // bytes; an annotation's key has at most 317
	maxMessage  = 2048 // bytes; some four screens of a terminal
)

// decodeDecision checks a result against Decision. It takes nothing that it does not know: a key or an effect that is not
// understood may have meant a refusal.
func decodeDecision(v ast.Value) (Decision, error) {
	object, ok := v.(ast.Object)
	if !ok {
		return Decision{}, fmt.Errorf("the result is a %s, want an object", ast.ValueName(v))
	}
	d := Decision{Findings: []Finding{}}
	var sawAllowed, sawFindings bool
	err := object.Iter(func(k, v *ast.Term) error {
		switch key, _ := k.Value.(ast.String); key {
		case "allowed":
			b, ok := v.Value.(ast.Boolean)
			if !ok {
				return fmt.Errorf("allowed is a %s, want a boolean", ast.ValueName(v.Value))
			}
			d.Allowed, sawAllowed = bool(b), true
		case "findings":
			var err error
			sawFindings = true
			d.Findings, err = decodeFindings(v.Value)
			return err
		default:
			return fmt.Errorf("unknown key %s in the result", keyName(k))
		}
		return nil
	})
	if err != nil {
		return Decision{}, err
	}
	if !sawAllowed || !sawFindings {
		return Decision{}, errors.New("the result needs the keys allowed and findings")
	}
	denies := func(f Finding) bool { return f.Effect == EffectDeny }
	if i := slices.IndexFunc(d.Findings, denies); d.Allowed && i >= 0 {
		return Decision{}, fmt.Errorf("the result is allowed, and finding %s denies", d.Findings[i].Code)
	}
	return d, nil
}

// decodeFindings takes a set or an array, and returns findings in the order of their code and field, see order. It takes all or none: what
// is not understood may have meant a refusal. How many there are is bounded by what the evaluation may take; how many are told, by bound.
func decodeFindings(v ast.Value) ([]Finding, error) {
	each, n, err := listed(v)
	if err != nil {
		return nil, err
	}
	out := make([]Finding, 0, n)
	err = each(func(t *ast.Term) error {
		f, err := decodeFinding(t.Value)
		if err != nil {
			return err
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortFindings(out)
	return out, nil
}

// listed returns how to look at each element of a set or an array, and how many there are.
func listed(v ast.Value) (each func(func(*ast.Term) error) error, n int, err error) {
	switch list := v.(type) {
	case ast.Set:
		return list.Iter, list.Len(), nil
	case *ast.Array:
		return list.Iter, list.Len(), nil
	}
	return nil, 0, fmt.Errorf("findings is a %s, want a set or an array", ast.ValueName(v))
}

func sortFindings(findings []Finding) {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Message, b.Message))
	})
}

// keyName is short whatever the key is: values share their parts, and as texts they can be as large as one likes.
func keyName(k *ast.Term) string {
	if s, ok := k.Value.(ast.String); ok {
		return fmt.Sprintf("%.40q", string(s))
	}
	return "that is a " + ast.ValueName(k.Value)
}

func decodeFinding(v ast.Value) (Finding, error) {
	object, ok := v.(ast.Object)
	if !ok {
		return Finding{}, fmt.Errorf("a finding is a %s, want an object", ast.ValueName(v))
	}
	var f Finding
	err := object.Iter(func(k, v *ast.Term) error {
		key, _ := k.Value.(ast.String)
		s, ok := v.Value.(ast.String)
		if !ok {
			return fmt.Errorf("%s of a finding is a %s, want a string", keyName(k), ast.ValueName(v.Value))
		}
		switch key {
		case "code":
			f.Code = string(s)
		case "effect":
			f.Effect = Effect(s)
		case "field":
			f.Field = string(s)
		case "message":
			f.Message = string(s)
		default:
			return fmt.Errorf("unknown key %s in a finding", keyName(k))
		}
		return nil
	})
	if err != nil {
		return Finding{}, err
	}
	switch {
	case !codePattern.MatchString(f.Code):
		return Finding{}, fmt.Errorf("code %.40q of a finding: want %s", f.Code, codeForm)
	case f.Effect != EffectDeny && f.Effect != EffectWarn && f.Effect != EffectAudit:
		return Finding{}, fmt.Errorf("effect %.40q of finding %s: want deny, warn or audit", string(f.Effect), f.Code)
	case len(f.Field) > maxField || len(f.Message) > maxMessage:
		return Finding{}, fmt.Errorf("finding %s: field has at most %d bytes, message %d", f.Code, maxField, maxMessage)
	case !utf8.ValidString(f.Field) || !utf8.ValidString(f.Message):
		return Finding{}, fmt.Errorf("finding %s: field or message is not UTF-8", f.Code)
	}
	return f, nil
}
