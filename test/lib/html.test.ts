/** HTML of users that browsers of visitors render. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { sanitizeHtml } from "../../src/lib/html.ts";

test.each([
  [
    "allowed tags",
    "<p>a <b>b</b><br><ul><li>c</li></ul></p>",
    "<p>a <b>b</b><br /></p><ul><li>c</li></ul><p></p>",
  ],
  ["a script", "a<script>alert(1)</script>b", "ab"],
  ["a style", "a<style>*{display:none}</style>b", "ab"],
  ["an unclosed script", "a<script>alert(1)", "a"],
  ["an image with a handler", '<img src=x onerror="alert(1)">a', "a"],
  ["a handler of an allowed tag", '<b onmouseover="alert(1)" style="color:red" class="x">a</b>', "<b>a</b>"],
  [
    "an SVG",
    '<svg onload="alert(1)"><script>alert(1)</script><a href="javascript:1">a</a></svg>',
    "<a>a</a>",
  ],
  [
    "an animation of an SVG",
    "<svg><a><animate attributeName=href values=javascript:1 />a</a></svg>",
    "<a>a</a>",
  ],
  ["MathML", '<math><mtext><b href="javascript:1">a</b></mtext></math>', "<b>a</b>"],
  ["a frame", '<iframe srcdoc="<script>alert(1)</script>"></iframe>a', "a"],
  ["an object", '<object data="x"></object><embed src="x">a', "a"],
  ["a form", '<form action="https://a.example"><input name=a><button>go</button></form>', "go"],
  ["meta and base", '<meta http-equiv=refresh content="0;url=x"><base href="https://a.example">a', "a"],
  [
    "a link by HTTPS",
    '<a href="https://a.example/?a=1&amp;b=2">a</a>',
    '<a href="https://a.example/?a=1&amp;b=2">a</a>',
  ],
  ["an e-mail", '<a href="mailto:a@a.example">a</a>', '<a href="mailto:a@a.example">a</a>'],
  ["javascript:", '<a href="javascript:alert(1)">a</a>', "<a>a</a>"],
  ["javascript: with other letters", '<a href=" JaVa&#x0A;ScRiPt&colon;alert(1)">a</a>', "<a>a</a>"],
  ["data:", '<a href="data:text/html,<script>alert(1)</script>">a</a>', "<a>a</a>"],
  ["HTTP", '<a href="http://a.example">a</a>', "<a>a</a>"],
  ["a path", '<a href="/logout">a</a>', "<a>a</a>"],
  ["another host by the page's scheme", '<a href="//a.example">a</a>', "<a>a</a>"],
  [
    "a target",
    '<a href="https://a.example" target="_blank" ping="https://b.example">a</a>',
    '<a href="https://a.example">a</a>',
  ],
  ["nested scripts", "<scr<script>ipt>alert(1)</scr</script>ipt>", "ipt&gt;alert(1)ipt&gt;"],
  ["a comment", "a<!-- <script> --><!--><b>b</b>-->c", "a<b>b</b>--&gt;c"],
  ["escaped HTML", "&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;script&gt;alert(1)&lt;/script&gt;"],
  [
    "an attribute that ends early",
    `<a href="https://a.example/&quot;onclick=&quot;alert(1)">a</a>`,
    '<a href="https://a.example/&quot;onclick=&quot;alert(1)">a</a>',
  ],
  ["a template", "<template><script>alert(1)</script></template>a", "a"],
  ["noscript", '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>', "<p></p>"],
])("sanitizes %s", (_, html, safe) => {
  expect(sanitizeHtml(html)).toBe(safe);
});

test("deep nesting ends, in time that grows with the text", () => {
  const deep = "<b>".repeat(1_600);
  expect(sanitizeHtml(deep).length).toBeLessThan(1_000);
});

test("whatever is sent, only allowed tags and links are left", () => {
  const part = fc.constantFrom(
    "<",
    ">",
    '"',
    "'",
    "=",
    "/",
    " ",
    "&",
    "a",
    "b",
    "script",
    "svg",
    "style",
    "href",
    "onload",
    "<a ",
    "</",
    "<!--",
    "-->",
    "javascript:",
    "https://x",
    "<![CDATA[",
    "]]>",
    "&quot;",
    "&#x3c;",
    "\0",
    "\n",
    "<math>",
    "<p>",
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), (parts) => {
      const safe = sanitizeHtml(parts.join(""));
      const tags = safe.match(/<[^>]*>?/g) ?? [];
      for (const tag of tags)
        expect(tag).toMatch(
          /^<\/?(b|i|em|strong|u|p|ul|ol|li|a)>$|^<br \/>$|^<a href="(https:\/\/|mailto:)[^"\s]*">$/i,
        );
    }),
    { numRuns: 2_000 },
  );
});
