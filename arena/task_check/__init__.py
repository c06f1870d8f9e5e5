"""`arena tasks check`: does every task prove itself?"""
