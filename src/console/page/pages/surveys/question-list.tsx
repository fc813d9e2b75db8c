/** Questions of a survey in order, moved by pointer, arrow keys or buttons. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { followPointer } from "../../components/follow-pointer.ts";
import { Icon } from "../../components/icons.tsx";
import { Button } from "../../components/primitives.tsx";
import { lazyMessages } from "../../messages/later.ts";
import { moveQuestion, type Question, removeQuestion } from "../../model/surveys.ts";
import { original, QuestionTranslation } from "./languages.tsx";
import { QuestionForm } from "./question-form.tsx";

const w = lazyMessages.surveys;
/** A press that moves less is a click. */
const dragLeastPx = 4;

interface Drag {
  from: number;
  to: number;
}

/** Place at which a question is shown while another one is dragged. */
function getShownPlace(position: number, { from, to }: Drag): number {
  if (position === from) return to;
  if (from < position && position <= to) return position - 1;
  return to <= position && position < from ? position + 1 : position;
}

export function QuestionList({
  questions,
  language,
  errorOf: getError,
  onChange,
}: {
  questions: readonly Question[];
  /** The texts in this language are edited. */
  language: string;
  errorOf: (field: string) => string | undefined;
  onChange: (questions: Question[]) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Drag>();
  const [reported, setReported] = useState("");
  /** The question that moved and what was focused: elements that change their place lose the focus. */
  const moved = useRef<{ id: string | undefined; focused: HTMLElement | undefined } | undefined>(undefined);
  const pointerY = useRef(0);
  const heightBefore = useRef(0);
  const count = questions.length;
  const isDragging = drag !== undefined;

  const grips = () => [...(list.current?.querySelectorAll<HTMLElement>(".question-grip") ?? [])];
  // The list keeps its height while its questions are collapsed, and the dragged one stays under the pointer.
  useLayoutEffect(() => {
    const element = list.current;
    const grip = drag && grips()[drag.from];
    if (!element || !grip) return;
    element.style.minBlockSize = `${heightBefore.current}px`;
    const getShift = () => {
      const { top, bottom } = grip.getBoundingClientRect();
      return pointerY.current - (top + bottom) / 2;
    };
    scrollBy({ top: -getShift(), behavior: "instant" });
    element.style.paddingBlockStart = `${Math.max(0, getShift())}px`;
    return () => {
      element.style.minBlockSize = "";
      element.style.paddingBlockStart = "";
    };
  }, [isDragging]);
  useLayoutEffect(() => {
    if (drag) grips()[drag.from]?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }, [drag?.to]);
  useLayoutEffect(() => {
    if (moved.current === undefined) return;
    const { id, focused } = moved.current;
    moved.current = undefined;
    const grip = grips()[questions.findIndex((question) => question.id === id)];
    // The button of the direction is disabled at the end of the list.
    const target = focused?.isConnected && !focused.matches(":disabled") ? focused : grip;
    target?.focus({ preventScroll: true });
    grip?.scrollIntoView({ block: "nearest", behavior: "instant" });
  });

  const put = (position: number, changed: Question) =>
    onChange(questions.map((question, index) => (index === position ? changed : question)));
  const keepFocus = (position: number) => {
    const focused = document.activeElement;
    moved.current = {
      id: questions[position]!.id,
      focused: focused instanceof HTMLElement && list.current?.contains(focused) ? focused : undefined,
    };
  };
  const move = (from: number, to: number) => {
    if (to < 0 || to >= count) return;
    keepFocus(from);
    setReported(w.moved(to + 1, count));
    onChange(moveQuestion(questions, from, to));
  };
  /** The place under the pointer: collapsed questions have the same height. */
  const getPlace = (clientY: number): number => {
    const cards = [...(list.current?.querySelectorAll<HTMLElement>(".card") ?? [])];
    const tops = cards.map((card) => card.getBoundingClientRect().top).sort((a, b) => a - b);
    const first = tops[0]!;
    const step = (tops.at(-1)! - first) / (count - 1);
    return Math.min(count - 1, Math.max(0, Math.floor((clientY - first) / step)));
  };
  const startDrag = (event: PointerEvent, from: number) => {
    if (event.button !== 0 || count < 2) return;
    const startY = event.clientY;
    let to = from;
    let isMoved = false;
    followPointer(event, {
      onMove({ clientY }) {
        if (!isMoved && Math.abs(clientY - startY) < dragLeastPx) return;
        pointerY.current = clientY;
        if (isMoved) to = getPlace(clientY);
        else heightBefore.current = list.current?.offsetHeight ?? 0;
        isMoved = true;
        setDrag({ from, to });
      },
      onEnd(isDone) {
        if (isMoved) keepFocus(from);
        setDrag(undefined);
        if (isDone && to !== from) move(from, to);
      },
    });
  };
  const byKey = (event: KeyboardEvent, position: number) => {
    const to = position + (event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0);
    if (to === position) return;
    event.preventDefault();
    move(position, to);
  };

  return (
    <div ref={list} class={isDragging ? "question-list dragging" : "question-list"}>
      {questions.map((question, position) => (
        <fieldset
          key={question.id ?? position}
          class={drag?.from === position ? "card stack dragged" : "card stack"}
          style={{ order: drag ? getShownPlace(position, drag) : position }}
        >
          <legend class="unseen">{w.question(position + 1)}</legend>
          <div class="question-head">
            <button
              type="button"
              class="button quiet only-icon question-grip"
              aria-label={w.dragQuestion(position + 1)}
              title={w.dragHelp}
              onPointerDown={(event) => startDrag(event, position)}
              onKeyDown={(event) => byKey(event, position)}
            >
              <Icon name="grip" />
            </button>
            <h3>{w.question(position + 1)}</h3>
            <span class="excerpt muted">{question.question}</span>
            <span class="question-buttons">
              <Button
                kind="quiet"
                icon="up"
                label={w.moveUp(position + 1)}
                isDisabled={position === 0}
                onClick={() => move(position, position - 1)}
              />
              <Button
                kind="quiet"
                icon="down"
                label={w.moveDown(position + 1)}
                isDisabled={position === count - 1}
                onClick={() => move(position, position + 1)}
              />
              <Button
                kind="quiet"
                icon="trash"
                label={w.removeQuestion(position + 1)}
                isDisabled={count === 1}
                onClick={() => onChange(removeQuestion(questions, position))}
              />
            </span>
          </div>
          {language === original ? (
            <QuestionForm
              question={question}
              position={position}
              count={count}
              error={getError(`questions.${position}.question`)}
              onChange={(changed) => put(position, changed)}
            />
          ) : (
            <QuestionTranslation
              question={question}
              language={language}
              errorOf={(member) => getError(`questions.${position}.translations.${language}.${member}`)}
              onChange={(changed) => put(position, changed)}
            />
          )}
        </fieldset>
      ))}
      <p class="unseen" role="status">
        {reported}
      </p>
    </div>
  );
}
