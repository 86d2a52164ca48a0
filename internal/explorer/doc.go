// Package explorer implements the pages of /ui/, which show and change the data of accounts
// in a browser, and show the engine at work.
//
// A Handler serves HTML pages, their assets, a JSON API and one stream of events. The
// templates, style sheet and ES modules in assets are embedded; nothing is loaded from
// elsewhere. The state of an engine comes in as plain data, so that the package works over
// any store.Store.
//
// # Pages
//
//	GET /ui/            assets/pages/index.html
//	GET /ui/NAME        assets/pages/NAME.html, such as table, entity, engine, keys
//	GET /ui/login       assets/pages/login.html, without a session
//	GET /ui/assets/TAG/FILE
//
// Each page defines the templates "title" and "main" of assets/layout.html and is executed
// with a Page. TAG changes with the content of the assets, so that a browser keeps them.
// Accounts, tables, keys and filters are in the query of a page's URL, which the modules
// read: /ui/table?account=A&table=T&filter=F&select=a,b. Without a session, pages redirect
// to /ui/login?next=PATH.
//
// # Sessions
//
// The cookie of a session is HttpOnly and SameSite=Strict. Requests other than GET need the
// header X-Csrf-Token with Page.CSRF, and the Origin of the page. Every request needs a Host
// that is an address, localhost, or one of Options.IsHost, because a name could be rebound to
// this machine. The link of a login is /ui/login#once=TOKEN: a browser does not send the
// fragment, so that no log has it; the page posts it.
//
//	POST api/login    {once} | {account, key} | {account, sas}    Session
//	POST api/logout   {}                                          {}
//	GET  api/session                                              Session
//
// A login that fails has the status 403, and 429 with Retry-After after too many failures.
//
// # API
//
// Paths are relative to /ui/. Bodies are JSON. Query parameters are a (account), t (table),
// filter, select (names with commas). A failure has a 4xx or 5xx status and the body Failure;
// its code and message are those of the Table protocol where it has one; where a property or
// a key is not valid, property names it, and detail says what it must be. 401 means that
// there is no session. A session by a shared access signature gets 403 for what the
// signature does not allow.
//
// Accounts and tables:
//
//	GET  api/accounts                                             {accounts: [AccountInfo]}
//	GET  api/tables?a                                             {tables: [TableInfo], totals: bool}
//	POST api/tables/create  {account, table}                      {}
//	POST api/tables/delete  {account, table, typed}               {}    typed repeats the name
//	POST api/tables/clear   {account, table, typed}               {job: ID}
//
// Entities. A page ends after top rows (default 100, at most 1,000), at about 4 MiB of JSON, or
// when about 2 s have passed; next is the token of the following page, "" at the end, and a
// page can be empty with a next. Cells longer than cell bytes (default 1,024, 0: all) are
// cut. pk and rk start at the first entity with this key or a greater one. count counts for
// about 2 s and returns next to continue.
//
//	GET  api/entities?a&t&filter&select&top&cell&next|pk&rk       EntityPage
//	GET  api/count?a&t&filter&next                                {count, next, ms}
//	GET  api/entity?a&t&pk&rk                                     Entity
//	POST api/entity   {account, table, op, entity, etag}          Written
//	POST api/batch    {account, table, ops: [{op, entity, etag}]} {results: [Written or Failure], failed: N}
//
// The op is insert, merge, replace, delete, or with a missing entity allowed insertOrMerge,
// insertOrReplace. An etag "*" matches any version. If the ETag differs, the status is 412
// and, except in a batch, Failure.theirs has the stored entity, null if it was deleted. A batch
// has up to 1,000 operations; those of one partition are transactions of at most 100, all or
// none of them.
//
// Queries. POST because texts can be long; nothing is changed.
//
//	POST api/filter   {text} | {tree: Condition}                  {text, tree, error: Failure}
//	GET  api/explain?a&t&filter                                   Explanation
//
// Jobs run in the background and end with the session, and about a second after it loses the
// right to their action. Poll a job about twice a second. A job that has ended is kept for an
// hour, or until there are 100 later ones.
//
//	GET  api/jobs                                                 {jobs: [Job]}
//	GET  api/job?id                                               Job
//	POST api/job/cancel {id}                                      {}
//	POST api/export   {account, table, filter, select, name, format, compression}
//	                                                              {job: ID, url}
//	GET  api/export/file?id                                       the file
//	POST api/import   {account, table, name, size, format, compression, mode, skipBad,
//	                   partitionKey, rowKey, delimiter}           {job: ID}
//	POST api/import/data?id&offset=N   up to 8 MiB of the file    {received: N}
//
// format is csv, tsv, jsonl, json or parquet; compression is "", gz or zst; both default to
// those of the name. Open the url of an export as a download: where Job.resumable is set,
// the browser can continue an interrupted one by a Range. The chunks of an import are sent
// one after the other; after a failure, api/job says how many bytes are received, and the
// import continues there. A chunk at another offset gets 409. A Parquet file is kept as a
// temporary file until it is complete: an import gets 413 if that and the exports would have
// more than 16 GiB, and 507 if the disk has too little space.
//
// Access:
//
//	GET  api/acl?a&t                                              {policies: [Policy]}
//	POST api/acl      {account, table, policies: [Policy]}        {}
//	GET  api/sas/fields                                           {account: [SASField], table: [SASField]}
//	POST api/sas      {account, kind: account|table, fields: {name: value}} SAS
//
// The engine:
//
//	GET  api/live                                                 Live
//	GET  api/events   a stream of events "live", one Live a second
package explorer
