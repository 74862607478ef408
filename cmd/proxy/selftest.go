package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Results of an operation.
const (
	resultOK     = "ok"
	resultFailed = "FAILED"
	resultNone   = "none" // there was nothing to ask
)

// answer is a line of the table.
type answer struct {
	Group        string  `json:"group"`
	Operation    string  `json:"operation"`
	Result       string  `json:"result"`
	Milliseconds float64 `json:"milliseconds"`
	Detail       string  `json:"detail"`
}

// askTimeout bounds one operation: a host that does not answer is a result too.
const askTimeout = 60 * time.Second

// asker performs operations that change nothing.
type asker struct {
	handlers   *handler.Handlers
	operations map[string]*apiserver.Operation // by group and name
	answers    []answer
}

func newAsker(handlers *handler.Handlers) (*asker, error) {
	apis, err := apiserver.Load(handlers.Groups()...)
	if err != nil {
		return nil, err
	}
	a := &asker{handlers: handlers, operations: map[string]*apiserver.Operation{}}
	for _, api := range apis {
		for _, op := range api.Operations() {
			a.operations[op.Group+" "+op.Name] = op
		}
	}
	return a, nil
}

// ask performs one operation and notes the answer. It refuses every operation that is not known to be read-only. The response is nil
// if there is none. Messages have the older of their interfaces because some of the published packages know no other.
func (a *asker) ask(ctx context.Context, group, name string, asked protoadapt.MessageV1) protoadapt.MessageV1 {
	request := protoadapt.MessageV2Of(asked)
	op := a.operations[group+" "+name]
	if op == nil || !op.ReadOnly {
		a.add(answer{group, name, resultFailed, 0, "not performed: it is not a read-only operation"})
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	begun := time.Now()
	response, err := a.handlers.Handle(ctx, &apiserver.Call{Operation: op, Method: name, Request: request, Served: request})
	line := answer{group, name + of(request), resultOK, float64(time.Since(begun).Microseconds()) / 1000, ""}
	if err != nil {
		line.Result, line.Detail = resultFailed, fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
		a.add(line)
		return nil
	}
	line.Detail = short(response)
	a.add(line)
	return protoadapt.MessageV1Of(response)
}

func (a *asker) add(line answer) { a.answers = append(a.answers, line) }

// nothing notes why no operation of a group was performed.
func (a *asker) nothing(group, why string) { a.add(answer{group, "-", resultNone, 0, why}) }

// of names what a request is about.
func of(request proto.Message) string {
	if text := short(request); text != "{}" {
		return " " + text
	}
	return ""
}

// maxDetail keeps lines readable; a node may have hundreds of disks.
const maxDetail = 400

// short is a message in one line. The format's own spacing is made to differ from run to run.
func short(m proto.Message) string {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return err.Error()
	}
	line := strings.NewReplacer(`": `, `":`, `",  `, `",`, `", `, `",`, "\t", " ").Replace(string(text))
	if len(line) > maxDetail {
		line = strings.ToValidUTF8(line[:maxDetail], "") + "..."
	}
	return line
}
