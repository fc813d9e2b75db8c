/**
 * Comments cite the contract and the requirement by page and section; every citation leads somewhere, and so does every
 * link of the documents.
 */

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { Glob } from "bun";
import { isKnownOperator } from "../../src/lib/values/operators.ts";

const root = join(import.meta.dir, "../..");
const contract = join(root, "docs/contract");
const pageNames = ["ingestion", "flag-evaluation", "management-api", "sdk-compat", "experiments"] as const;

/** A page of the contract: its text, and the numbers of its headings. */
async function readPage(name: string): Promise<{ text: string; sections: Set<string> }> {
  const text = await Bun.file(join(contract, `${name}.md`)).text();
  const sections = new Set([...text.matchAll(/^#{2,3} (\d+(?:\.\d+)?)\.? /gm)].map(([, number]) => number!));
  return { text, sections };
}

const pages = Object.fromEntries(
  await Promise.all(pageNames.map(async (name) => [name, await readPage(name)] as const)),
);
const readme = await Bun.file(join(contract, "README.md")).text();
const requirement = await Bun.file(join(contract, "requirement.md")).text();
const decisions = new Set([...readme.matchAll(/^\| (\d+a?) \|/gm)].map(([, number]) => number!));

/** The comments of a source file, each as one line. */
function getComments(source: string): string[] {
  const blocks = [...source.matchAll(/\/\*\*?([\s\S]*?)\*\//g)].map(([, text]) => text!);
  const runs = [...source.matchAll(/(?:^[ \t]*\/\/.*\n?)+/gm)].map(([text]) => text);
  return [...blocks, ...runs].map((text) => text.replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, " "));
}

/** `5 to 14`, `2.1 to 2.3`, `11 and 13`, `0.1 item 13`: the numbers behind the name of a page. */
const number = String.raw`\d+(?:\.\d+)?(?! ?[KMG]i?B)`;
const numbers = new RegExp(
  String.raw`\b(${pageNames.join("|")})((?:,? (?:and )?(?:sections? )?${number}(?: to ${number})?(?: \([^)]*\))?(?: \([^)]*\))?)+)`,
  "g",
);

/** Sections of pages that a comment cites, as `page number`. */
function sectionsCited(comment: string): string[] {
  return [...comment.matchAll(numbers)].flatMap(([, page, list]) =>
    [...list!.replace(/\([^)]*\)/g, "").matchAll(new RegExp(number, "g"))].map(
      ([found]) => `${page} ${found}`,
    ),
  );
}

/** Rows of the table of decisions that a comment cites: `decision 1`, `decisions 1, 6 and 7a`, `decisions 1 to 9`. */
function decisionsCited(comment: string): string[] {
  return [...comment.matchAll(/\bdecisions? (\d+a?(?:(?:, | and | to )\d+a?)*)/g)].flatMap(([, list]) => {
    const [first, last] = list!.split(" to ").map(Number);
    if (last === undefined || Number.isNaN(last)) return list!.split(/, | and | to /);
    return Array.from({ length: last - first! + 1 }, (_, index) => String(first! + index));
  });
}

/** Whether a section exists: its own heading, or for a chapter without sections of its own the chapter's. */
function isThere(citation: string): boolean {
  const [page = "", section = ""] = citation.split(" ");
  return pages[page]?.sections.has(section) === true;
}

const comments: { file: string; text: string }[] = [];
for (const file of new Glob("{src,cli,test,deploy}/**/*.{ts,tsx,sql}").scanSync(root)) {
  if (file === "test/house/citations.test.ts" || file.includes("node_modules/")) continue;
  for (const text of getComments(await Bun.file(join(root, file)).text())) comments.push({ file, text });
}
/** What is wrong with citations, with the file. */
const wrong = (cited: (text: string) => string[], exists: (citation: string) => boolean) =>
  comments.flatMap(({ file, text }) =>
    cited(text)
      .filter((citation) => !exists(citation))
      .map((citation) => `${file}: ${citation}`),
  );

describe("citations", () => {
  test("of sections lead to headings of the contract's pages", () => {
    expect(comments.flatMap(({ text }) => sectionsCited(text)).length).toBeGreaterThan(150);
    expect(wrong(sectionsCited, isThere)).toEqual([]);
  });

  test("of decisions lead to rows of the table", () => {
    expect(comments.flatMap(({ text }) => decisionsCited(text)).length).toBeGreaterThan(25);
    expect(wrong(decisionsCited, (row) => decisions.has(row))).toEqual([]);
  });

  test("of passages of the README lead to its words", () => {
    const passages = (text: string) =>
      [...text.matchAll(/\bREADME,? (?:"([^"]+)"|\(([\w ]+)\))/g)].map(
        ([, quoted, named]) => (quoted ?? named)!,
      );
    expect(comments.flatMap(({ text }) => passages(text)).length).toBeGreaterThan(8);
    const words = readme.toLowerCase();
    expect(wrong(passages, (passage) => words.includes(passage.toLowerCase()))).toEqual([]);
  });

  test("of the requirement lead to its headings, or to words of it", () => {
    const cited = (text: string) =>
      [...text.matchAll(/\brequirement[:,] ([A-Z][\w ]*?|\w+ endpoints)(?: (\d+))?[.;,)]/g)].map(
        ([, name]) => name!,
      );
    expect(comments.flatMap(({ text }) => cited(text)).length).toBeGreaterThan(5);
    const isHeading = (name: string) =>
      requirement.includes(`\n## ${name}\n`) || (name.endsWith(" endpoints") && requirement.includes(name));
    expect(wrong(cited, isHeading)).toEqual([]);
  });

  test("of files lead to files of that name", () => {
    const places = ["*.{ts,md}", "{src,cli,test,deploy,docs,examples}/**/*.{ts,tsx,sql,md}"];
    const found = places.flatMap((place) => [...new Glob(place).scanSync(root)]);
    const names = new Set(found.map((file) => basename(file)));
    const cited = (text: string) =>
      [...text.matchAll(/`(?:[\w.-]+\/)*([\w.-]+\.(?:ts|tsx|sql|md))`/g)].map(([, name]) => name!);
    expect(comments.flatMap(({ text }) => cited(text)).length).toBeGreaterThan(40);
    expect(wrong(cited, (name) => names.has(name))).toEqual([]);
  });

  test("are found in the forms in which they are written", () => {
    expect(sectionsCited("contract, ingestion 5.3, 7.1, 7.2; decisions 4, 21.")).toEqual([
      "ingestion 5.3",
      "ingestion 7.1",
      "ingestion 7.2",
    ]);
    expect(sectionsCited("management-api 2.1 to 2.3, decision 15; sdk-compat 4.4 for what")).toEqual([
      "management-api 2.1",
      "management-api 2.3",
      "sdk-compat 4.4",
    ]);
    expect(sectionsCited("management-api 5.1 (STALE), 5.9.")).toEqual([
      "management-api 5.1",
      "management-api 5.9",
    ]);
    expect(sectionsCited("sdk-compat 0.1 item 13 and 4.4")).toEqual(["sdk-compat 0.1"]);
    expect(isThere("ingestion 7.9")).toBe(false);
    expect(decisionsCited("decisions 1, 6 and 7a for the rest")).toEqual(["1", "6", "7a"]);
    expect(decisionsCited("decisions 1 to 3")).toEqual(["1", "2", "3"]);
  });
});

describe("the contract's tables", () => {
  const source = (path: string) => Bun.file(join(root, path)).text();

  test("of warnings name every warning that there is", async () => {
    const ofIngestion = /export type WarningType =[\s\S]*?;[\s\S]*?;/.exec(
      await source("src/ingestion/outcome.ts"),
    )!;
    const created = [...ofIngestion[0].matchAll(/\| "([a-z_]+)"/g)];
    for (const file of new Glob("src/persons/identity/*.ts").scanSync(root)) {
      created.push(
        ...(await source(file)).matchAll(/(?:warningAbout\(event, |return | \? )"([a-z]+_[a-z_]+)"/g),
      );
    }
    expect(created.length).toBeGreaterThan(16);
    const table = /## 17\. Warnings[\s\S]*?\n## /.exec(pages.ingestion!.text)![0];
    expect(created.map(([, type]) => type).filter((type) => !table.includes(`\`${type}\``))).toEqual([]);
  });

  test("of operators name every one that is tested, and no other", async () => {
    const table = /## 12\. Operators[\s\S]*?\n### 12\.1/.exec(pages["flag-evaluation"]!.text)![0];
    const cells = table.split("\n").flatMap((line) => /^\| (`[^|]*)\|/.exec(line)?.[1] ?? []);
    const named = new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!)));
    const plain = [...named].filter((name) => !["neq", "tilde", "caret", "wildcard", "not_"].includes(name));
    expect(plain.filter((name) => !isKnownOperator(name))).toEqual([]);
    const tested = (await Bun.file(join(root, "test/flags/testdata/operators.json")).json()) as {
      operator: string;
    }[];
    const isNamed = (operator: string) =>
      named.has(operator) || named.has(operator.replace(/^(not|semver)_/, "")) || named.has(`is_${operator}`);
    expect(tested.map(({ operator }) => operator).filter((operator) => !isNamed(operator))).toEqual([]);
  });
});

describe("documents", () => {
  const documents = ["*.md", "docs/**/*.md", "deploy/*.md", "examples/**/*.md"].flatMap((pattern) => [
    ...new Glob(pattern).scanSync(root),
  ]);

  test("link to files and headings that exist", async () => {
    const broken: string[] = [];
    for (const file of documents) {
      const text = await Bun.file(join(root, file)).text();
      for (const [, target] of text.replace(/```[\s\S]*?```/g, "").matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target!)) continue;
        const [path = "", anchor] = target!.split("#");
        const linked = path === "" ? join(root, file) : join(root, dirname(file), path);
        if (!existsSync(linked)) broken.push(`${file}: ${target}`);
        else if (anchor !== undefined && !getAnchors(await Bun.file(linked).text()).has(anchor)) {
          broken.push(`${file}: ${target}`);
        }
      }
    }
    expect(broken).toEqual([]);
  });

  test("name files that exist", async () => {
    const missing: string[] = [];
    for (const file of documents.filter((name) => name !== "CHANGELOG.md")) {
      const text = await Bun.file(join(root, file)).text();
      for (const [, path] of text.matchAll(/`((?:src|cli|test|docs|deploy|examples)\/[\w./-]*[\w/])`/g)) {
        if (!existsSync(join(root, path!))) missing.push(`${relative(root, join(root, file))}: ${path}`);
      }
    }
    expect(missing).toEqual([]);
  });

  test("the architecture page has the layers of the test, in their order", async () => {
    const page = await Bun.file(join(root, "docs/architecture.md")).text();
    const table = /<!-- layers -->([\s\S]*?)<!-- \/layers -->/.exec(page)![1]!;
    const shown = [...table.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, layer]) => layer);
    const held = await Bun.file(join(root, "test/house/layers.test.ts")).text();
    const list = /const layers = \[([\s\S]*?)\];/.exec(held)![1]!;
    expect(shown).toEqual([...list.matchAll(/"([\w-]+)"/g)].map(([, layer]) => layer));
  });
});

/** The anchors under which a page's headings are reached. */
function getAnchors(markdown: string): Set<string> {
  const headings = [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => heading!);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
