package bundle

import (
	"fmt"
	"strings"
)

// Inspect reads what an archive says of itself, without asking whether it is true. It is for people, never for decisions.
func Inspect(raw []byte) (Bundle, KeyID, error) {
	files, err := unpack(raw)
	if err != nil {
		return Bundle{}, "", err
	}
	token, err := takeToken(files)
	if err != nil {
		return Bundle{}, "", err
	}
	head, _, _ := strings.Cut(token, ".")
	text, err := encoding.DecodeString(head)
	var claimed header
	if err == nil {
		err = decode(text, &claimed)
	}
	if err != nil {
		return Bundle{}, "", refuse(ReasonSignature, fmt.Errorf("header of the token: %w", err))
	}
	b, err := fromFiles(files)
	if err != nil {
		return Bundle{}, "", refuse(ReasonContent, err)
	}
	return b, claimed.KeyID, nil
}
