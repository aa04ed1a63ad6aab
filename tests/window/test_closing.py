"""The close button: asks once while work goes on, and never keeps a person in."""

from __future__ import annotations

from app.window.process import Closing


def test_without_work_it_quits() -> None:
    assert Closing().press() == "quit"


def test_with_work_it_asks_once_then_goes_on_in_the_background() -> None:
    closing = Closing(busy=True)
    assert [closing.press(), closing.press()] == ["ask", "background"]


def test_staying_lets_it_ask_again() -> None:
    closing = Closing(busy=True)
    closing.press()
    closing.stay()
    assert closing.press() == "ask"


def test_work_that_ended_under_the_question_lets_it_quit() -> None:
    closing = Closing(busy=True)
    closing.press()
    closing.busy = False
    assert closing.press() == "quit"
