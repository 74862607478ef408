package admission

import (
	"context"
	"errors"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
	"github.com/pipeguard/pipeguard/internal/turns"
)

var errNoPlace = errors.New("too many reviews of one user or namespace at once; try again")

type placeKey struct{}

// atPlace returns the context of a review that came through the desk and holds a place.
func atPlace(ctx context.Context, place *intake.Place) context.Context {
	return context.WithValue(ctx, placeKey{}, place)
}

// mayStay reports whether a review may wait for an evaluation. Only those that came through the desk hold places.
func mayStay(ctx context.Context, sender turns.Sender) bool {
	place, ok := ctx.Value(placeKey{}).(*intake.Place)
	return !ok || place.Stay(sender)
}
