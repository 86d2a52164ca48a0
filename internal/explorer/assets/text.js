// Entities as text for the clipboard: JSON of the protocol, and CSV that an import reads.

// The type shows in the JSON value alone for these.
const plain = new Set(["Edm.String", "Edm.Int32", "Edm.Boolean"]);

function jsonValue(p) {
  switch (p.type) {
    case "Edm.Int32": return p.value;
    case "Edm.Boolean": return p.value;
    case "Edm.Double":
      return Number.isFinite(Number(p.value)) ? (/[.eE]/.test(p.value) ? p.value : `${p.value}.0`) : JSON.stringify(p.value);
    default: return JSON.stringify(p.value);
  }
}

/** Entities as a JSON array, one entity a line. */
export function toJSON(rows) {
  const lines = rows.map((row) => {
    const members = [["PartitionKey", JSON.stringify(row.pk)], ["RowKey", JSON.stringify(row.rk)], ["Timestamp", JSON.stringify(row.timestamp)]];
    for (const p of row.props) {
      const value = jsonValue(p);
      if (!plain.has(p.type) && !(p.type === "Edm.Double" && !value.startsWith('"'))) members.push([`${p.name}@odata.type`, JSON.stringify(p.type)]);
      members.push([p.name, value]);
    }
    return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
  });
  return `[${lines.join(",\n")}]\n`;
}

// An empty cell is an absent property, and "" is the empty string.
function cell(text) {
  if (text === undefined) return "";
  return text === "" || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Entities as CSV with typed columns; one that has several types gets a column of types. */
export function toCSV(rows) {
  const types = new Map();
  for (const row of rows) {
    for (const p of row.props) types.set(p.name, (types.get(p.name) ?? new Set()).add(p.type));
  }
  const header = ["PartitionKey", "RowKey", "Timestamp"];
  for (const [name, set] of types) {
    if (set.size > 1) header.push(name, `${name}@type`);
    else header.push(set.has("Edm.String") ? name : `${name}@${[...set][0]}`);
  }
  const lines = rows.map((row) => {
    const cells = [row.pk, row.rk, row.timestamp];
    for (const [name, set] of types) {
      const p = row.props.find((one) => one.name === name);
      cells.push(p?.value);
      if (set.size > 1) cells.push(p && p.type);
    }
    return cells.map(cell).join(",");
  });
  return `${[header.map(cell).join(","), ...lines].join("\n")}\n`;
}
