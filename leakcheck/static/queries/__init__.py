"""What several rules ask of a file: does this grow, is that released, is it an evaluation?"""
