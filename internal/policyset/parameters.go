package policyset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Bounds of the parameters of PolicyModules. Three bytes of text can be a value that takes 300 in memory, in the policies that
// decide and in those that are tried beside them.
const (
	maxParameters    = 256 << 10 // bytes of one object's parameters
	maxAllParameters = 1 << 20   // bytes of all objects' together
	maxValues        = 10_000    // values of one object's parameters: members, elements, and what holds them
	maxAllValues     = 40_000    // values of all objects' together
	maxNesting       = 32
)

// parameterSum is what the parameters of several objects take together.
type parameterSum struct{ bytes, values int }

// add decodes the parameters of one PolicyModule, after it has weighed them. Numbers keep their text, so that equal objects give equal data.
func (s *parameterSum) add(raw *apiextensionsv1.JSON) (map[string]any, error) {
	value := map[string]any{}
	if raw == nil || len(bytes.TrimSpace(raw.Raw)) == 0 {
		return value, nil
	}
	values, err := checkParameters(raw.Raw)
	if err != nil {
		return nil, fmt.Errorf("spec.parameters: %w", err)
	}
	s.bytes, s.values = s.bytes+len(raw.Raw), s.values+values
	if s.bytes > maxAllParameters || s.values > maxAllValues { // another error says so, of all of them
		return value, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw.Raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("spec.parameters: want an object: %w", err)
	}
	if value == nil { // null
		value = map[string]any{}
	}
	return value, nil
}

// check returns an error if all parameters together are too much.
func (s *parameterSum) check() error {
	switch {
	case s.bytes > maxAllParameters:
		return fmt.Errorf("the parameters of all PolicyModules together have %d bytes, and at most %d are taken", s.bytes, maxAllParameters)
	case s.values > maxAllValues:
		return fmt.Errorf("the parameters of all PolicyModules together have %d values, and at most %d are taken", s.values, maxAllValues)
	}
	return nil
}

// checkParameters returns how many values a JSON text has. It refuses what the API server or kubectl would change, so that the
// command line and the cluster decide by the same: a null within, which kubectl apply leaves out, and numbers that are neither a
// 64-bit integer nor the shortest text of a 64-bit floating-point number.
func checkParameters(text []byte) (values int, err error) {
	if len(text) > maxParameters {
		return 0, fmt.Errorf("%d bytes, and at most %d are taken", len(text), maxParameters)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for depth := 0; ; {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && depth == 0 && values > 0:
			return values, nil
		case err != nil:
			return 0, fmt.Errorf("want an object: %w", err)
		case depth == 0 && values > 0:
			return 0, errors.New("more than one JSON value")
		}
		values++
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				depth, values = depth-1, values-1
			} else {
				depth++
			}
		case json.Number:
			if err := checkNumber(token.String()); err != nil {
				return 0, err
			}
		case nil:
			if depth > 0 {
				return 0, errors.New("null: kubectl apply leaves it out, so that the cluster would decide by something else; leave it out, or write another value")
			}
		}
		if values > maxValues {
			return 0, fmt.Errorf("more than %d values", maxValues)
		}
		if depth > maxNesting {
			return 0, fmt.Errorf("nested more than %d deep", maxNesting)
		}
	}
}

// checkNumber returns an error if the API server would store another number than the one that is written.
func checkNumber(text string) error {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if isMinusZero := f == 0 && math.Signbit(f); err == nil && !isMinusZero && decimal(text) == decimal(strconv.FormatFloat(f, 'e', -1, 64)) {
		return nil
	}
	const longest = 40
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return fmt.Errorf("number %s: the API server would store another one: it keeps 64-bit integers and floating-point numbers; write it as a string", text)
}

// decimal is the one text of a JSON number: its digits without zeros at the ends, and the power of ten of the first one. Of an exponent
// that no float has it is none of a float's.
func decimal(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	power, err := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
	if exponent != "" && err != nil {
		return text
	}
	sign := ""
	if rest, ok := strings.CutPrefix(mantissa, "-"); ok {
		mantissa, sign = rest, "-"
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	significant := strings.TrimLeft(digits, "0")
	power += len(whole) - 1 - (len(digits) - len(significant))
	significant = strings.TrimRight(significant, "0")
	if significant == "" {
		return "0"
	}
	return fmt.Sprintf("%s%se%d", sign, significant, power)
}
