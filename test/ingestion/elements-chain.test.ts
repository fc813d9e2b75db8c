import { expect, test } from "bun:test";
import fc from "fast-check";
import { elementsMax, parseElementsChain } from "../../src/events/serialize.ts";
import { elementsChain } from "../../src/ingestion/elements-chain.ts";
import { expectWithin } from "../support/times.ts";

test("the chain of a click", () => {
  const elements = [
    {
      tag_name: "a",
      $el_text: 'Say "hi"',
      classes: ["small", "btn"],
      attr__class: "small btn",
      attr__href: "/x?a=1",
      attr__id: "go",
      "attr__data-test": "t",
      nth_child: 2,
      nth_of_type: 1,
    },
    { tag_name: "div", nth_child: 3, nth_of_type: 3 },
  ];
  expect(elementsChain(elements)).toBe(
    'a.btn.small:attr__class="small btn"attr__data-test="t"attr__href="/x?a=1"attr__id="go"attr_id="go"href="/x?a=1"' +
      'nth-child="2"nth-of-type="1"text="Say \\"hi\\"";div:nth-child="3"nth-of-type="3"',
  );
});

test("is parsed back from the chain", () => {
  const chain = elementsChain([
    {
      tag_name: "span",
      $el_text: 'back\\slash; "quoted"\\',
      attr__class: ["x"],
      attr__title: "a=b;c",
      nth_child: 1,
    },
    { tag_name: "p" },
  ]);
  const [span, p] = parseElementsChain(chain);
  expect(span).toMatchObject({
    tag_name: "span",
    text: 'back\\slash; "quoted"\\',
    attr_class: ["x"],
    nth_child: 1,
    attributes: { attr__title: "a=b;c" },
  });
  expect(p).toMatchObject({ tag_name: "p", text: null, order: 1 });
});

test("long texts and links are truncated, and never within a character", () => {
  const chain = elementsChain([
    { tag_name: "a", $el_text: `${"x".repeat(399)}😀`, attr__href: `/${"y".repeat(3_000)}` },
  ]);
  expect(chain.isWellFormed()).toBe(true);
  expect(chain).toContain(`text="${"x".repeat(399)}\ufffd"`);
  expect(chain).toContain(`"href="/${"y".repeat(2_047)}"`);
});

test("invalid elements are omitted", () => {
  expect(elementsChain([null, 1, "a", [], { tag_name: 5 }])).toBe(':nth-child="0"nth-of-type="0"');
  expect(elementsChain([])).toBe("");
});

test("any chain is parsed by its format", () => {
  // Patterns say the form shortly, but take for ever on some texts.
  const elements = /(?:[^;"]|"(?:\\.|[^"\\])*"?)+/gs;
  const attribute = /([^="]+)="((?:\\.|[^"\\])*)"/gs;
  const byPatterns = (chain: string) =>
    (chain.match(elements) ?? []).map((text) => {
      const [, names = "", rest = ""] = /^([^:"]*):?(.*)$/s.exec(text) ?? [];
      const found = new Map<string, string>();
      for (const [, name, value] of rest.matchAll(attribute))
        found.set(name!, value!.replace(/\\(["\\])/g, "$1"));
      return { names, attributes: [...found].filter(([name]) => name.startsWith("attr__")) };
    });
  const chunk = fc.constantFrom(
    "a",
    ".b",
    ":",
    ";",
    '"',
    "=",
    '="',
    "\\",
    '\\"',
    "attr__x",
    'attr__y="1"',
    "\n",
  );
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 20 }), (chunks) => {
      const chain = chunks.join("");
      const read = parseElementsChain(chain).map(({ tag_name, attr_class, attributes }) => ({
        names: [tag_name ?? "", ...(attr_class ?? [])].join("."),
        attributes: Object.entries(attributes),
      }));
      expect(read).toEqual(byPatterns(chain));
    }),
    { numRuns: 5_000 },
  );
});

test("a hostile chain takes linear time, and its result is not larger", async () => {
  for (const chain of [
    `a:${"b".repeat(19_000_000)}`,
    `a:${"=".repeat(19_000_000)}`,
    `a:${'="'.repeat(9_000_000)}`,
    `a:x="${"y".repeat(19_000_000)}"`,
    `a:x="${'\\"'.repeat(9_000_000)}`,
    `a:${'x="1"'.repeat(3_000_000)}`,
    "a;".repeat(9_000_000),
    ";".repeat(19_000_000),
    ".".repeat(19_000_000),
    '"'.repeat(19_000_000),
  ]) {
    await expectWithin(1_000, async () => {
      const found = parseElementsChain(chain);
      expect(found.length).toBeLessThanOrEqual(elementsMax);
      expect(JSON.stringify(found).length).toBeLessThan(8 * 1024 * 1024);
    });
  }
});
