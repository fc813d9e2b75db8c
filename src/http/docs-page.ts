/** Renders the documentation as one page without scripts or external resources. Pure. */

import type { JsonSchema, OpenApiDocument, Operation } from "./openapi.ts";

const pageStyle = `
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid #d5dbe1}
details{border:1px solid #d5dbe1;border-radius:6px;margin:.4rem 0}summary{cursor:pointer;padding:.45rem .7rem}
details>div{padding:0 .9rem .7rem}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f3f5f7;padding:.7rem;border-radius:6px;overflow:auto}
b.get{color:#0a5}b.post{color:#05a}b.patch,b.put{color:#a60}b.delete{color:#b11}b{display:inline-block;width:4.2rem}
td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}nav a{margin-right:1rem}
@media(prefers-color-scheme:dark){body{color:#d8dee6;background:#14181d}pre{background:#1e242b}
details,h2{border-color:#333c46}a{color:#8ab8ff}b.get{color:#4c9}b.post{color:#7af}b.patch,b.put{color:#eb6}b.delete{color:#f77}}
`;

/** The whole page. @param prefix path prefix of a reverse proxy. */
export function docsPage(document: OpenApiDocument, prefix: string): string {
  const sections = document.tags.map(({ name }) => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, operation]) => operation.tags.includes(name))
        .map(([method, operation]) => operationHtml(method, path, operation)),
    );
    return `<h2 id="${anchor(name)}">${escaped(name)}</h2>${operations.join("")}`;
  });
  const links = document.tags.map(({ name }) => `<a href="#${anchor(name)}">${escaped(name)}</a>`).join("");
  const schemas = Object.entries(document.components.schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => schemaHtml(name, schema))
    .join("");
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(document.info.title)} API</title><style>${pageStyle}</style></head><body>
<h1>${escaped(document.info.title)} API</h1><p>Version ${escaped(document.info.version)}. As data: <a href="${escaped(prefix)}/api/schema/">/api/schema/</a>.</p>
<p>${prose(document.info.description)}</p><nav>${links}<a href="#schemas">Schemas</a></nav>
${sections.join("")}<h2 id="schemas">Schemas</h2>${schemas}</body></html>`;
}

function operationHtml(method: string, path: string, operation: Operation): string {
  const parameters = operation.parameters.map(
    (parameter) =>
      `<tr><td><code>${escaped(String(parameter.name))}</code></td><td>${escaped(String(parameter.in))}</td>` +
      `<td>${parameter.required ? "required" : ""}</td><td>${prose(String(parameter.description ?? ""))}</td></tr>`,
  );
  const answers = Object.entries(operation.responses).map(
    ([status, answer]) => `<tr><td><code>${status}</code></td><td>${answerHtml(answer)}</td></tr>`,
  );
  return (
    `<details><summary><b class="${method}">${method.toUpperCase()}</b> <code>${escaped(path)}</code> ${escaped(operation.summary)}</summary><div>` +
    `<p>${prose(operation.description ?? "")}</p>` +
    (parameters.length > 0 ? `<table>${parameters.join("")}</table>` : "") +
    (operation.requestBody ? `<p>Body</p>${contentHtml(operation.requestBody)}` : "") +
    `<table>${answers.join("")}</table></div></details>`
  );
}

function answerHtml(answer: JsonSchema): string {
  return `${prose(String(answer.description ?? ""))}${answer.content ? contentHtml(answer) : ""}`;
}

/** The example, and the name of the schema if it has one. */
function contentHtml(holder: JsonSchema): string {
  const content = (holder.content as Record<string, JsonSchema>)["application/json"]!;
  const name = String((content.schema as JsonSchema).$ref ?? "")
    .split("/")
    .at(-1)!;
  const link = name === "" ? "" : ` <a href="#schema-${anchor(name)}">${escaped(name)}</a>`;
  const shown = content.example ?? (name === "" ? content.schema : undefined);
  return `${link}${shown === undefined ? "" : `<pre>${escaped(JSON.stringify(shown, null, 2))}</pre>`}`;
}

function schemaHtml(name: string, schema: JsonSchema): string {
  const body = escaped(JSON.stringify(schema, null, 2));
  return `<details id="schema-${anchor(name)}"><summary><code>${escaped(name)}</code></summary><div><pre>${body}</pre></div></details>`;
}

/** Escapes text and renders `code` spans. */
function prose(text: string): string {
  return escaped(text)
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replaceAll("\n\n", "<br>");
}

function anchor(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => escapes[sign]!);
}

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
