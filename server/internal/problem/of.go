package problem

import (
	"context"
	"errors"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/odata/batch"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/cors"
	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// Of maps an error to its problem. It is the only such map. An unknown error is an internal
// error: its status is 500, and it is logged.
func Of(err error) *Problem {
	var (
		p        *Problem
		op       *store.OpError
		model    *edm.Error
		payload  *odata.Error
		envelope *batch.Error
		syntax   *filter.Error
		doc      *documents.Error
		refusal  *sharedkey.Refusal
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, request.ErrUnsupported):
		return ErrMediaType
	case errors.Is(err, request.ErrAtom):
		return ErrAtom
	case errors.Is(err, request.ErrVerbose):
		return ErrVerbose
	case errors.Is(err, request.ErrNoResource):
		return ErrURI
	case errors.Is(err, request.ErrSyntax):
		return ErrURLSyntax
	case errors.Is(err, request.ErrToken), errors.Is(err, request.ErrQuery):
		return ErrInput
	case errors.Is(err, request.ErrTimeout):
		return ErrQueryValue
	case errors.Is(err, request.ErrOption):
		return ErrNotImplemented
	case errors.Is(err, cors.ErrHeader):
		return ErrCorsHeader
	case errors.Is(err, cors.ErrNoRule):
		return ErrNoCors
	case errors.As(err, &refusal):
		return &Problem{
			Status: refusal.Status, Code: refusal.Code, Message: refusal.Message,
			Challenge: refusal.Challenge, Refusal: true, Front: refusal.Front, Bare: refusal.Bare, Full: refusal.Full,
			Cause: refusal.Reason,
		}
	case errors.As(err, &op):
		q := *Of(op.Err)
		q.Executed = op.Executed
		return &q
	case errors.As(err, &model):
		return OfModel(model)
	case errors.As(err, &payload):
		return ofPayload(payload)
	case errors.As(err, &envelope):
		return Bad(CodeInvalidInput, inputNotValid)
	case errors.As(err, &doc):
		return Bad("InvalidXmlDocument", "XML specified is not syntactically valid.")
	case errors.As(err, &syntax):
		return ofFilter(syntax)
	}
	return ofStore(err)
}

// ofStore maps the sentinels of store.
func ofStore(err error) *Problem {
	switch {
	case errors.Is(err, store.ErrTableExists):
		return ErrTableExists
	case errors.Is(err, store.ErrTableNotFound):
		return ErrNoTable
	case errors.Is(err, store.ErrEntityExists):
		return ErrEntityExists
	case errors.Is(err, store.ErrEntityNotFound):
		return ErrNotFound
	case errors.Is(err, store.ErrPrecondition):
		return ErrCondition
	case errors.Is(err, store.ErrOutcomeUnknown): // whatever its cause was
		return TimedOut(err)
	case errors.Is(err, store.ErrUnavailable),
		errors.Is(err, store.ErrNoSpace), errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrClosed):
		p := *ErrBusy
		p.Cause = err
		return &p
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return TimedOut(err)
	}
	return Internal(err)
}

// OfModel maps an error of the data model.
func OfModel(e *edm.Error) *Problem {
	switch e.Rule {
	case edm.RuleTableName:
		if strings.EqualFold(e.Name, "tables") {
			return ErrInput
		}
		return Bad("InvalidResourceName", "The specifed resource name contains invalid characters.")
	case edm.RuleTableNameLength:
		return Bad(codeOutOfRange, "The specified resource name length is not within the permissible limits.")
	case edm.RuleKey:
		return ErrOutOfRange
	case edm.RuleKeyLength, edm.RuleValueSize:
		return ErrValueTooLarge
	case edm.RulePropertyName:
		return ErrPropertyName
	case edm.RulePropertyNameLength:
		return Bad("PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")
	case edm.RulePropertyCount:
		return Bad("TooManyProperties", "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each "+
			"entity also has 3 system properties.")
	case edm.RulePropertyDuplicate:
		return Bad("DuplicatePropertiesSpecified", propertyTwice)
	case edm.RuleEntitySize:
		return Bad("EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")
	case edm.RuleRange:
		return ErrOutOfRange
	case edm.RuleBatchCount:
		return Bad(CodeInvalidInput, "The batch request operation exceeds the maximum 100 changes per change set.")
	case edm.RuleBatchBytes:
		return ErrBodyTooLarge
	case edm.RuleBatchPartition:
		return Bad("CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.")
	case edm.RuleBatchDuplicate:
		return Bad("InvalidDuplicateRow", "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.")
	case edm.RuleUTF8, edm.RuleMetaSize:
		return ErrInput
	}
	return ErrInput
}

// ofPayload maps an error in the JSON of an entity.
func ofPayload(e *odata.Error) *Problem {
	key := e.Member == edm.PartitionKeyName || e.Member == edm.RowKeyName
	switch e.Kind {
	case odata.Duplicate:
		if key {
			return Bad("DuplicateKeyPropertySpecified", propertyTwice)
		}
		return OfModel(&edm.Error{Rule: edm.RulePropertyDuplicate})
	case odata.MissingKey, odata.MissingName:
		return ErrNeedValue
	case odata.OutOfRange:
		return OutOfRange(e.Member, e.Got)
	case odata.TooManyNames:
		return OfModel(&edm.Error{Rule: edm.RulePropertyCount})
	case odata.BadValue:
		if key {
			return ErrKeyType
		}
	}
	return ErrProcessing
}

// ofFilter maps an error in a $filter.
func ofFilter(e *filter.Error) *Problem {
	if e.Unsupported {
		return ErrNotImplemented
	}
	p := Bad(CodeInvalidInput, e.Message)
	p.Early = true
	return p
}
