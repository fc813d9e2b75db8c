/** The first rows of a file that is going to be imported: a table (CSV, TSV) or JSON, one record per line or a list. */

export interface Preview {
  columns: string[];
  rows: Record<string, unknown>[];
}

/** Bytes that are read for a preview. */
export const previewBytes = 256 * 1024;
export const previewRowsMax = 20;
const columnsMax = 100;

type Row = Record<string, unknown>;

/** @param isCut whether the text is only the start of the file @returns undefined for an unknown format */
export function readPreview(text: string, isCut: boolean): Preview | undefined {
  const plain = text.replace(/^\uFEFF/, "");
  // Compressed and binary files have no preview.
  if (plain.includes("\0") || plain.includes("\uFFFD") || plain.trim() === "") return undefined;
  if (/^\s*[[{]/.test(plain)) return fromJson(plain, isCut);
  return fromTable(plain, isCut);
}

const isRecord = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function fromJson(text: string, isCut: boolean): Preview | undefined {
  let records: unknown[] = [];
  try {
    const parsed = JSON.parse(text) as unknown;
    records = Array.isArray(parsed) ? parsed : [parsed];
  } catch {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    try {
      records = (isCut ? lines.slice(0, -1) : lines)
        .slice(0, previewRowsMax)
        .map((line) => JSON.parse(line) as unknown);
    } catch {
      return undefined;
    }
  }
  const rows = records.filter(isRecord).slice(0, previewRowsMax);
  if (rows.length === 0) return undefined;
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, columnsMax);
  return { columns, rows };
}

function fromTable(text: string, isCut: boolean): Preview | undefined {
  const head = text.split("\n", 1)[0]!;
  const delimiters = [",", "\t", ";"];
  const [delimiter = ","] = delimiters.toSorted((a, b) => head.split(b).length - head.split(a).length);
  const records = parseTable(text, delimiter, previewRowsMax + 2);
  // The last record may be truncated.
  const complete = isCut && records.length < previewRowsMax + 2 ? records.slice(0, -1) : records;
  const [names, ...rows] = complete;
  if (names === undefined || names.length < 2) return undefined;
  const columns = names.slice(0, columnsMax);
  return {
    columns,
    rows: rows
      .slice(0, previewRowsMax)
      .map((row) => Object.fromEntries(columns.map((name, position) => [name, row[position] ?? ""]))),
  };
}

function parseTable(text: string, delimiter: string, recordsMax: number): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endRecord = () => {
    record.push(cell);
    if (record.length > 1 || cell !== "") records.push(record);
    record = [];
    cell = "";
  };
  for (let index = 0; index < text.length && records.length < recordsMax; index++) {
    const char = text[index]!;
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[index + 1] === '"') {
        cell += '"';
        index += 1;
      } else isQuoted = false;
    } else if (char === '"' && cell === "") isQuoted = true;
    else if (char === delimiter) {
      record.push(cell);
      cell = "";
    } else if (char === "\n") endRecord();
    else if (char !== "\r") cell += char;
  }
  if (records.length < recordsMax && (cell !== "" || record.length > 0)) endRecord();
  return records;
}
