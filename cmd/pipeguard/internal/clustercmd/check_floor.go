package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Modes of the floor, as the webhook's configuration has them.
const (
	floorOff    = "Off"
	floorAlways = "Always"
	floorOnly   = "Only"
)

// floorOf is what the webhook's configuration says of the floor.
type floorOf struct{ Mode, Name string }

// replaces says that the floor stands in place of the webhook for objects.
func (f floorOf) replaces() bool { return f.Mode == floorOnly }

// policies are the names of the floor's policies; there are none if the release keeps no floor, or it is not known whether it does.
func (f floorOf) policies() []string {
	if f.Mode != floorAlways && !f.replaces() {
		return nil
	}
	return floor.Names(f.Name)
}

// floor checks that the API server has the floor that the configuration asks for, made of the policies that decide.
func (s *survey) floor(ctx context.Context) check {
	c := newCheck("floor")
	c.Text = "the floor could not be checked"
	f, err := s.floorOf(ctx, s.release)
	if err != nil {
		c.unknown("configuration of the webhook", err)
		return c
	}
	s.floorMode = f
	if f.Mode == floorOff {
		c.Text = "there is no floor (floor.mode Off): while no replica answers, the failure policies decide"
		return c
	}
	c.Text = fmt.Sprintf("floor.mode %s, in the policies %s", f.Mode, strings.Join(floor.Names(f.Name), " and "))
	sources, err := (&live{api: s.api, release: s.release}).Policies(ctx)
	if err != nil {
		c.unknown("policies", err)
		return c
	}
	s.compareFloor(ctx, &c, f, sources.Policies())
	for i := range sources.PolicyModules {
		about := "PolicyModule " + sources.PolicyModules[i].Name
		if f.replaces() {
			c.no(about, "the floor cannot say it, and no object is sent to the webhook: it refuses nothing")
		} else {
			c.Items = append(c.Items, item{about, "the floor cannot say it: while no replica answers, it refuses nothing"})
		}
	}
	s.floorInForce = c.State == stateOK
	return c
}

// compareFloor compares each object with the one that is made of the policies. Its messages name the revision, so it is made with the revision that the object
// says it is of.
func (s *survey) compareFloor(ctx context.Context, c *check, f floorOf, p admission.Policies) {
	for _, empty := range floor.Empty(f.Name) {
		kind, name := empty.GetObjectKind().GroupVersionKind().Kind, empty.GetName()
		about := kind + " " + name
		got := floor.EmptyLike(empty)
		err := s.get(ctx, "/apis/admissionregistration.k8s.io/v1/"+resourcesOf[kind]+"/"+name, got)
		switch {
		case apierrors.IsNotFound(err):
			c.no(about, "is not there: the floor refuses nothing of its part")
			continue
		case err != nil:
			c.unknown(about, err)
			continue
		case got.GetDeletionTimestamp() != nil:
			c.no(about, "is being deleted")
			continue
		}
		revision := got.GetAnnotations()[floor.RevisionAnnotation]
		if known := s.report.Revisions; len(known) > 0 && !slices.Contains(known, revision) {
			c.no(about, "is made of revision %s, by which no replica decides", revisionText(revision))
		}
		want, isClosed, err := wantedFloor(floor.Options{Name: f.Name, Policies: p, Revision: revision}, empty)
		if err != nil {
			c.unknown(about, err)
			continue
		}
		if isClosed {
			c.Items = append(c.Items, item{about, "the policies are too many for a floor: it permits no pipe"})
		}
		if parts := differs(want, got); len(parts) > 0 {
			c.no(about, "is not what the policies say: %s", strings.Join(parts, ", "))
		}
	}
}

// resourcesOf are the resources of a floor's kinds.
var resourcesOf = map[string]string{
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}

func revisionText(revision string) string {
	if revision == "" {
		return "none"
	}
	return revision
}

// wantedFloor makes the object of the kind and name of another one, and says whether it is of a floor that permits nothing.
func wantedFloor(o floor.Options, like floor.Object) (want floor.Object, isClosed bool, err error) {
	made, err := floor.New(o)
	if isClosed = errors.Is(err, floor.ErrTooLarge); isClosed {
		made, err = floor.Closed(o)
	}
	if err != nil {
		return nil, isClosed, err
	}
	for _, object := range made.Objects() {
		if object.GetName() != like.GetName() || object.GetObjectKind().GroupVersionKind() != like.GetObjectKind().GroupVersionKind() {
			continue
		}
		return object, isClosed, nil
	}
	return nil, isClosed, fmt.Errorf("a floor has no %s", like.GetName())
}

// differs names the parts of an object that are not as they should be.
func differs(want, got floor.Object) (parts []string) {
	if floor.SameSpec(want, got) {
		return nil
	}
	part := func(name string, want, got any) {
		if !equality.Semantic.DeepEqual(want, got) {
			parts = append(parts, name)
		}
	}
	switch want := want.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		if got, ok := got.(*admissionregistrationv1.ValidatingAdmissionPolicy); ok {
			part("failurePolicy", want.Spec.FailurePolicy, got.Spec.FailurePolicy)
			part("matchConstraints", want.Spec.MatchConstraints, got.Spec.MatchConstraints)
			part("matchConditions", want.Spec.MatchConditions, got.Spec.MatchConditions)
			part("variables", want.Spec.Variables, got.Spec.Variables)
			part("validations", want.Spec.Validations, got.Spec.Validations)
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		if got, ok := got.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); ok {
			part("policyName", want.Spec.PolicyName, got.Spec.PolicyName)
			part("validationActions", want.Spec.ValidationActions, got.Spec.ValidationActions)
			part("matchResources", want.Spec.MatchResources, got.Spec.MatchResources)
		}
	}
	if parts == nil {
		parts = []string{"another field of its spec"}
	}
	return parts
}

// floorOf reads the floor's settings from the configuration that the Deployment brings.
func (a *api) floorOf(ctx context.Context, r release) (floorOf, error) {
	d, err := a.deployment(ctx, r)
	if err != nil {
		return floorOf{}, err
	}
	fail := func(err error) (floorOf, error) {
		return floorOf{}, fmt.Errorf("annotation %s of Deployment %s/%s: %w", configAnnotation, r.namespace, r.service, err)
	}
	text, ok := d.Spec.Template.Annotations[configAnnotation]
	if !ok {
		return fail(errors.New("not found"))
	}
	config := struct{ Floor floorOf }{floorOf{Mode: floorOff, Name: "pipeguard-floor"}} // the webhook's own defaults
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return fail(errors.New("not valid YAML"))
	}
	if err := validFloor(config.Floor); err != nil {
		return fail(err)
	}
	return config.Floor, nil
}

// validFloor is what is wrong with the floor's settings.
func validFloor(f floorOf) error {
	if !slices.Contains([]string{floorOff, floorAlways, floorOnly}, f.Mode) {
		return fmt.Errorf("floor.mode %q is not known", policyset.Clip(f.Mode, maxQuoted))
	}
	if faults := validation.NameIsDNSSubdomain(f.Name, false); len(faults) > 0 {
		return fmt.Errorf("floor.name %q: %s", policyset.Clip(f.Name, maxQuoted), faults[0])
	}
	return nil
}

// maxQuoted bounds what is quoted of a configuration, in characters.
const maxQuoted = 64
