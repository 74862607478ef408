package apiserver

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// API is one served group-version with the compiled conversions of its methods. It does not change after Load.
type API struct {
	gv      GroupVersion
	service protoreflect.ServiceDescriptor
	methods []Method
}

// GroupVersion returns which version of which group this is.
func (a *API) GroupVersion() GroupVersion { return a.gv }

// Methods returns the served methods in the order of their declaration.
func (a *API) Methods() []Method { return slices.Clone(a.methods) }

// Method returns the served method of that name.
func (a *API) Method(name string) (Method, bool) {
	for _, m := range a.methods {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// Operations returns the operations that this version can ask for, in the order of its methods.
func (a *API) Operations() []*Operation {
	var operations []*Operation
	for _, m := range a.methods {
		if !slices.Contains(operations, m.Operation) {
			operations = append(operations, m.Operation)
		}
	}
	return operations
}

// Method is a served method and the operation that it asks for.
type Method struct {
	Name       string // "LinkPath"
	FullMethod string // "/v1alpha1.Filesystem/LinkPath"
	Operation  *Operation

	version     string
	errorPrefix string
	served, hub messages
	paths       []protoreflect.FieldDescriptor // of the served request
	toHub       plan
	fromHub     plan
}

// messages are the types of a method.
type messages struct {
	request, response protoreflect.MessageType
}

// NewRequest returns an empty request as clients of this version send it.
func (m Method) NewRequest() proto.Message { return m.served.request.New().Interface() }

// NewResponse returns an empty response as clients of this version receive it.
func (m Method) NewResponse() proto.Message { return m.served.response.New().Interface() }
