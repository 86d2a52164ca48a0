package predicate

// Residual returns the condition that a *filter.Expr puts on the rows whose keys
// are in its Ranges, or nil if it keeps all of them. expr may be a nil
// *filter.Expr. Package filter sets Residual, so that its exported API does not
// name the types of this package.
var Residual func(expr any) *Program
