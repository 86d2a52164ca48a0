// Package memtable indexes the entries of one log segment: point reads, and ordered
// iteration at any sequence number that a snapshot still reads.
//
// A Table copies no key and no value. A row takes 24 bytes, which refer to the
// segment's image by offset. Only trees contain pointers, so the garbage collector
// has little to scan.
//
//	hash of the partition key
//	  | low bits select 1 of 64 shards
//	  v
//	shard:  slots (open addressing)     partitions (slab)
//	        [hash | index+1] --------> [key, shared prefix, form, rows, handle]
//	                                                                 |
//	        form                rows     location of the rows <------+
//	        formOne                1     in the partition itself
//	        formArray, ...     2..32     sorted array of 4, 8, 16 or 32 items (slabs)
//	        formTree             33+     B+tree, and up to 32 rows that wait for it
//
//	item:   [prefix of the RowKey | sequence and kind | offset in the image | previous version]
//	                                                                            |
//	versions (slab): older versions that a snapshot may read  <-----------------+
//
//	directory: all partitions in key order, a sorted array and a tree of later ones
//
// The prefix of an item is the first 8 bytes after a prefix that all RowKeys of the
// partition share, so most comparisons do not read the image. A partition that
// outgrows an array moves to the next form, and the array is reused.
//
// Partitions are found by hash. The directory sorts them when a scan across
// partitions needs their order, so a load does not pay for it. A reader of one
// partition does not use the directory.
//
// The lock of the directory comes before the lock of a shard. No code outside the
// package runs under either.
package memtable
