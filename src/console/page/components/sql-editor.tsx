/**
 * SQL editor in a shadow root, where it can style itself with adopted sheets. The policy allows those, but not style
 * elements.
 */

import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { history, historyKeymap, standardKeymap, toggleComment } from "@codemirror/commands";
import { SQLDialect, type SQLNamespace, sql } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

/**
 * Keywords of a DuckDB SELECT. The editor's bundled dialects contain a thousand unrelated words: they would appear as
 * suggestions, and are a quarter of the editor's size.
 */
const duckdb = SQLDialect.define({
  keywords:
    "all and anti any array as asc asof between by case cast columns cross cube current desc distinct else end except exclude exists extract fetch filter first following for from full glob group grouping having ignore ilike in inner intersect interval is isnull join last lateral left like limit materialized natural not notnull null nulls offset on or order outer over partition percent pivot positional preceding qualify range recursive replace respect right rollup row rows sample select semi separator sets similar some struct summarize table tablesample then ties to try_cast unbounded union unnest unpivot using values when where window with within zone describe",
  types:
    "bigint bit blob boolean date decimal double float hugeint int integer json list map numeric real smallint text time timestamp timestamptz tinyint ubigint uinteger uuid varchar",
  builtin:
    "abs any_value approx_count_distinct arg_max arg_min avg bool_and bool_or ceil coalesce concat contains count date_diff date_part date_trunc dense_rank epoch extract first floor greatest histogram ifnull lag last lead least length list lower max median min mode now ntile nullif prop quantile_cont rank regexp_extract regexp_matches replace round row_number split_part starts_with stddev strftime strptime string_agg sum time_bucket today trim try_cast unnest upper",
  operatorChars: "+-*/<>=~!@#%^&|?:",
  charSetCasts: true,
  doubleDollarQuotedStrings: true,
  specialVar: "$",
  identifierQuotes: '"',
});

const colors = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--series-2)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--series-1)" },
  { tag: tags.number, color: "var(--series-3)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--series-5)" },
]);

const look = EditorView.theme({
  "&": {
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    fontSize: "14px",
    minHeight: "9rem",
    height: "100%",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: "0.6rem 0" },
  ".cm-scroller": { overflow: "auto", lineHeight: "1.55" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft) !important",
  },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    color: "var(--text)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--accent-strong)",
  },
});

export interface SqlEditorProps {
  label: string;
  /**
   * Text set from outside, by a new object each time. Typed text is not passed back: it would arrive late and overwrite
   * newer input.
   */
  content: { text: string; cursor?: number };
  onInput: (text: string) => void;
  /** Receives the current text: the last input may not have reached the page's state yet. */
  onRun: (text: string) => void;
  hint: string;
  /** Views with their columns, and properties, for completion. */
  schema: SQLNamespace;
}

export function SqlEditor({ label, content, onInput, onRun, hint, schema }: SqlEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const language = useRef(new Compartment());
  const run = useRef(onRun);
  run.current = onRun;
  const input = useRef(onInput);
  input.current = onInput;

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: content.text,
        extensions: [
          lineNumbers(),
          history(),
          EditorView.lineWrapping,
          language.current.of(sql({ dialect: duckdb, schema })),
          autocompletion({ icons: false }),
          syntaxHighlighting(colors),
          look,
          placeholder(hint),
          EditorView.contentAttributes.of({ "aria-label": label }),
          keymap.of([
            {
              key: "Mod-Enter",
              run: ({ state }) => {
                run.current(state.doc.toString());
                return true;
              },
            },
            ...completionKeymap,
            { key: "Mod-/", run: toggleComment },
            ...standardKeymap,
            ...historyKeymap,
          ]),
          // By default the browser preserves the style of replaced text in a style attribute, which the policy forbids.
          EditorView.domEventHandlers({
            beforeinput: (event, editor) => {
              const { state } = editor;
              const isOver = event.inputType === "insertText" && !state.selection.main.empty;
              if (!isOver || event.data === null || event.isComposing) return false;
              editor.dispatch({
                ...state.replaceSelection(event.data),
                userEvent: "input.type",
                scrollIntoView: true,
              });
              return true;
            },
          }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) input.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    // Scrollable areas must be reachable by keyboard.
    editor.scrollDOM.tabIndex = 0;
    view.current = editor;
    return () => editor.destroy();
  }, []);
  useEffect(() => {
    view.current?.dispatch({
      effects: language.current.reconfigure(sql({ dialect: duckdb, schema })),
    });
  }, [schema]);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== content.text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: content.text } });
    }
    if (editor && content.cursor !== undefined) {
      editor.dispatch({ selection: { anchor: content.cursor }, scrollIntoView: true });
      editor.focus();
    }
  }, [content]);
  return <div class="editor" ref={host} />;
}
