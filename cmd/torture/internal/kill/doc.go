// Package kill ends real processes at random moments while they write to a real
// disk, and holds what they leave against the acknowledgements that they wrote
// down.
package kill
