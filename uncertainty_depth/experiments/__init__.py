"""The experiments of the papers this package rests on, one file per question; `registry` names them."""
