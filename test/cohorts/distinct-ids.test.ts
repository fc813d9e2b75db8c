/** What an uploaded file names: distinct ids, in whatever form of CSV. */

import { expect, test } from "bun:test";
import { distinctIdsOfCsv } from "../../src/cohorts/distinct-ids.ts";

const rows: [what: string, csv: string, ids: string[]][] = [
  ["one a line", "a\nb\nc", ["a", "b", "c"]],
  ["each once, without space around, blank lines passed over", "\n \na\n\n b \na\n", ["a", "b"]],
  ["a byte order mark", "\uFEFFdistinct_id\na\n", ["a"]],
  ["a byte order mark, no heading", "\uFEFFa\nb", ["a", "b"]],
  ["line ends of Windows", "distinct_id,x\r\na,1\r\nb,2\r\n", ["a", "b"]],
  ["line ends of old Macs", "distinct_id,x\ra,1\rb,2", ["a", "b"]],
  ["line ends that change", "a\r\nb\nc\rd", ["a", "b", "c", "d"]],
  ["tabs", "email\tUser ID\nx@y.com\ta\n\tb\n", ["a", "b"]],
  ["tabs, the first column without a name", "\tdistinct_id\n0\ta\n1\tb\n", ["a", "b"]],
  ["semicolons", "email;distinct-id\nx@y.com;a\n;b,c\n", ["a", "b,c"]],
  ["commas, and semicolons in the cells", "distinct_id,x\na;b,1;2\nc,3\n", ["a;b", "c"]],
  ["the first cell when there is no heading", "a,1\nb;c,2\nd\te,3", ["a", "b;c", "d\te"]],
  ["a line break in quotes", 'note,distinct_id\n"two\nlines",a\n"and\r\nmore\n\n",b\n', ["a", "b"]],
  ["a line break in the quotes of the heading", '"a\nnote",distinct_id\nx,a\n', ["a"]],
  ["a line break in the quotes of an id", '"a\nb"\nc\n', ["a\nb", "c"]],
  ["quotes within quotes", 'distinct_id\n"a""b"\n"c"\n', ['a"b', "c"]],
  ["separators in quotes", 'plan,distinct_id\n"pro, old","a,b"\n', ["a,b"]],
  [
    "spaces before quotes",
    'name, plan, distinct_id\nx, "pro, old", "a"\ny, "pro", "b, "" c"\n',
    ["a", 'b, " c'],
  ],
  ["a quote inside of a cell without any", 'size,distinct_id\n5" wide,a"b\n', ['a"b']],
  ["rows that are too short", "email,distinct_id\nshort\nx,a\n", ["a"]],
  ["nothing", "", []],
];

test.each(rows)("%s", (_, csv, ids) => {
  expect(distinctIdsOfCsv(csv)).toEqual(ids);
});

test("a quote that is never closed is rejected: it would hold the rest of the file", () => {
  expect(() => distinctIdsOfCsv('distinct_id\na\n"b\nc\n')).toThrow(
    expect.objectContaining({ field: "csv", message: "Row 3 has an unclosed quote." }),
  );
});

test.each(["person_id,name\nx,y\n", '"Person UUID"\tname\nx\ty\n'])(
  "ids of persons are rejected: %s",
  (csv) => {
    expect(() => distinctIdsOfCsv(csv)).toThrow("person ids");
  },
);
